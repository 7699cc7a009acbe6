#include "plan/scan.h"

namespace fleuve::plan {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace

const std::string* FindOption(const Options& options, std::string_view name) {
  for (const auto& [key, value] : options) {
    if (EqualsIgnoringCase(key, name)) {
      return &value;
    }
  }
  return nullptr;
}

types::DataType MetadataColumnType() {
  using types::DataType;
  static const DataType kType = DataType::Struct({
      {"file_path", DataType::String(), false, {}},
      {"file_name", DataType::String(), false, {}},
      {"file_size", DataType::Long(), false, {}},
      {"file_block_start", DataType::Long(), false, {}},
      {"file_block_length", DataType::Long(), false, {}},
      {"file_modification_time", DataType::Timestamp(), false, {}},
  });
  return kType;
}

}  // namespace fleuve::plan
