// Reading CSV files.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "base/json.h"
#include "engine/carriers_internal.h"
#include "engine/files/byte_stream_internal.h"
#include "engine/files/csv_record_internal.h"
#include "engine/files/json_value_internal.h"
#include "engine/files/row_target_internal.h"
#include "engine/files/text_value_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::FlatVector;
using duckdb::idx_t;
using types::TypeKind;

bool SameName(std::string_view a, std::string_view b, bool case_sensitive) {
  if (case_sensitive) {
    return a == b;
  }
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

class CsvReader final : public RecordReader {
 public:
  CsvReader(const TextScanPlan& plan, const FilePart& part)
      : plan_(plan), part_(part), options_(plan.csv), fields_(plan.scan->data_schema.fields()) {
    FindColumns();
    if (options_.header && (part.begin > 0) && (options_.by_header || !options_.enforce_schema)) {
      // The header stands at the file's begin, in another part.
      CsvRecords head(options_, Open(0), 0, -1);
      ReadHeader(head);
      records_ = std::make_unique<CsvRecords>(options_, Open(part.begin), part.begin, part.end);
    } else {
      records_ = std::make_unique<CsvRecords>(options_, Open(part.begin), part.begin, part.end);
      if (options_.header && part.begin == 0) {
        ReadHeader(*records_);
      }
    }
  }

  idx_t Read(RowTarget& target, idx_t capacity) override {
    idx_t count = 0;
    bool any = target.rescued != nullptr;
    for (duckdb::Vector* column : target.columns) {
      any = any || column != nullptr;
    }
    any = any || plan_.scan->unknown_fields != nullptr;
    while (count < capacity) {
      std::string_view record;
      CsvSplitter::Outcome outcome = CsvSplitter::Outcome::kOk;
      auto more = any ? records_->Next(&record, &outcome) : records_->NextUnsplit(&record);
      if (!more.ok()) {
        if (count > 0 && !more.error().condition().empty()) {
          return count;  // it comes again; one without a condition is the record's alone
        }
        RaiseError(FailedReadFile(part_.file->uri, more.error()));
      }
      if (!*more) {
        break;
      }
      count += any ? Record(record, outcome, target, count) : 1;
    }
    return count;
  }

 private:
  std::unique_ptr<ByteStream> Open(std::int64_t offset) {
    auto stream = OpenFile(part_.file->path, offset, options_.encoding);
    if (!stream.ok()) {
      RaiseError(FailedReadFile(part_.file->uri, stream.error()));
    }
    return std::move(stream).value();
  }

  /// Data columns in file order: all but those for corrupt records and rescued data.
  void FindColumns() {
    bool pruned = false;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (static_cast<int>(i) == plan_.corrupt_index || static_cast<int>(i) == plan_.rescued_index) {
        continue;
      }
      file_columns_.push_back(i);
      pruned = pruned || !plan_.wanted[i];
    }
    // With some columns only, Spark's parser does not look at the number of fields.
    check_width_ = !pruned;
    places_.assign(fields_.size(), -1);
    for (std::size_t k = 0; k < file_columns_.size(); ++k) {
      places_[file_columns_[k]] = static_cast<int>(k);
    }
  }

  void ReadHeader(CsvRecords& records) {
    std::string_view record;
    CsvSplitter::Outcome outcome = CsvSplitter::Outcome::kOk;
    auto more = records.Next(&record, &outcome);
    if (!more.ok()) {
      RaiseError(FailedReadFile(part_.file->uri, more.error()));
    }
    if (!*more) {
      return;
    }
    std::vector<std::string> names;
    for (const CsvField& field : records.splitter().fields()) {
      names.emplace_back(field.text);
    }
    if (options_.by_header) {
      UseHeader(names);
    } else if (!options_.enforce_schema) {
      CheckHeader(names);
    }
  }

  void CheckHeader(const std::vector<std::string>& names) {
    bool same = names.size() == file_columns_.size();
    for (std::size_t k = 0; same && k < names.size(); ++k) {
      same = SameName(names[k], fields_[file_columns_[k]].name, false);
    }
    if (same) {
      return;
    }
    std::string header;
    for (const std::string& name : names) {
      header += (header.empty() ? "" : ", ") + name;
    }
    std::string schema;
    for (const std::size_t i : file_columns_) {
      schema += (schema.empty() ? "" : ", ") + fields_[i].name;
    }
    RaiseError(Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3241",
                     "CSV header does not conform to the schema.\n Header: " + header + "\n Schema: " + schema +
                         "\nCSV file: " + part_.file->uri)
                   .Family(ErrorFamily::kIllegalArgument));
  }

  void UseHeader(const std::vector<std::string>& names) {
    // A column is called as schema inference calls it; a schema may also use the header's own word for its first place.
    header_ = CsvColumnNames(names, false, options_.null_value);
    has_header_ = true;
    places_.assign(fields_.size(), -1);
    std::vector<bool> used(header_.size(), false);
    const std::vector<std::string>* const spellings[] = {&header_, &names};
    for (const std::vector<std::string>* words : spellings) {
      for (const std::size_t i : file_columns_) {
        for (std::size_t k = 0; places_[i] < 0 && k < words->size(); ++k) {
          if (!used[k] && SameName((*words)[k], fields_[i].name, options_.case_sensitive)) {
            places_[i] = static_cast<int>(k);
            used[k] = true;
          }
        }
      }
    }
    extra_.clear();
    for (std::size_t k = 0; k < used.size(); ++k) {
      if (!used[k]) {
        extra_.push_back(k);
      }
    }
    if (plan_.scan->unknown_fields != nullptr) {
      for (const std::size_t k : extra_) {
        bool other_case = false;
        for (const std::size_t i : file_columns_) {
          other_case = other_case || SameName(header_[k], fields_[i].name, false);
        }
        if (other_case) {
          continue;
        }
        if (auto error = plan_.scan->unknown_fields->OnUnknownField(*part_.file, header_[k], {})) {
          RaiseError(*error);
        }
      }
    }
  }

  /// The text of field `k` as the parser of Spark would give it; nullopt: NULL.
  std::optional<std::string_view> Token(std::size_t k) const {
    const CsvField& field = records_->splitter().fields()[k];
    std::string_view text = field.text;
    if (text.empty()) {
      text = field.is_empty_quoted ? std::string_view(options_.empty_value) : std::string_view(options_.null_value);
    }
    if (text == options_.null_value) {
      return std::nullopt;
    }
    return text;
  }

  idx_t Record(std::string_view record, CsvSplitter::Outcome outcome, RowTarget& target, idx_t row) {
    if (outcome == CsvSplitter::Outcome::kTooManyColumns || outcome == CsvSplitter::Outcome::kTooLongColumn ||
        outcome == CsvSplitter::Outcome::kUnescapedQuote) {
      return Malformed(record, "the record cannot be split into columns", target, row, false);
    }
    const std::size_t found = records_->splitter().fields().size();
    const bool rescuing = !options_.rescued_column.empty();
    const std::size_t wanted = has_header_ ? header_.size() : file_columns_.size();
    if (rescuing && found != wanted && wanted != 0) {
      return Malformed(record, "the number of fields is not the expected one", target, row, false);
    }
    bool bad = check_width_ && found != wanted;
    rescued_.clear();
    for (const std::size_t i : file_columns_) {
      duckdb::Vector* column = target.columns[i];
      if (column == nullptr) {
        continue;
      }
      const int place = places_[i];
      if (place < 0 || static_cast<std::size_t>(place) >= found) {
        SetNull(*column, row);
        continue;
      }
      const auto token = Token(static_cast<std::size_t>(place));
      if (!token) {
        SetNull(*column, row);
        continue;
      }
      if (!StoreCsvValue(options_, fields_[i].type, *token, *column, row)) {
        SetNull(*column, row);
        if (rescuing) {
          Rescue(fields_[i].name, *token);
        } else {
          bad = true;
        }
      }
    }
    if (rescuing) {
      for (const std::size_t k : extra_) {
        if (const auto token = Token(k)) {
          Rescue(header_[k], *token);
        }
      }
    }
    if (bad) {
      return Malformed(record, "the record does not fit the schema", target, row, true);
    }
    if (plan_.corrupt_index >= 0) {
      if (duckdb::Vector* column = target.columns[static_cast<std::size_t>(plan_.corrupt_index)]) {
        SetNull(*column, row);
      }
    }
    SetRescued(target, row);
    return 1;
  }

  void Rescue(std::string_view name, std::string_view value) {
    if (!rescued_.empty()) {
      rescued_.push_back(',');
    }
    AppendJsonString(rescued_, name);
    rescued_.push_back(':');
    AppendJsonString(rescued_, value);
  }

  void SetRescued(RowTarget& target, idx_t row) {
    duckdb::Vector* column =
        plan_.rescued_index >= 0 ? target.columns[static_cast<std::size_t>(plan_.rescued_index)] : target.rescued;
    if (column == nullptr) {
      return;
    }
    if (rescued_.empty()) {
      SetNull(*column, row);
      return;
    }
    std::string text = "{" + rescued_;
    if (options_.rescued_file_path) {
      text += ",\"_file_path\":";
      AppendJsonString(text, part_.file->uri);
    }
    SetText(*column, row, text + "}");
  }

  idx_t Malformed(std::string_view record, std::string_view reason, RowTarget& target, idx_t row, bool stored) {
    if (plan_.bad_records != nullptr) {
      plan_.bad_records->Add(part_.file->uri, record, reason);
      return 0;
    }
    if (options_.mode == ParseMode::kFailFast) {
      RaiseError(MalformedRecord(part_.file->uri, record, reason));
    }
    if (options_.mode == ParseMode::kDropMalformed) {
      return 0;
    }
    if (!stored) {
      for (duckdb::Vector* column : target.columns) {
        if (column != nullptr) {
          SetNull(*column, row);
        }
      }
    }
    if (plan_.corrupt_index >= 0) {
      if (duckdb::Vector* column = target.columns[static_cast<std::size_t>(plan_.corrupt_index)]) {
        SetText(*column, row, record);
      }
    }
    rescued_.clear();
    SetRescued(target, row);
    return 1;
  }

  const TextScanPlan& plan_;
  const FilePart part_;
  const CsvOptions& options_;
  const std::vector<types::StructField>& fields_;
  std::vector<std::size_t> file_columns_;
  /// For each data column the field of a record that holds it; -1: none.
  std::vector<int> places_;
  bool check_width_ = true;
  std::vector<std::string> header_;
  bool has_header_ = false;
  /// Fields of a record that belong to no column.
  std::vector<std::size_t> extra_;
  std::unique_ptr<CsvRecords> records_;
  std::string rescued_;
};

}  // namespace

std::unique_ptr<RecordReader> MakeCsvReader(const TextScanPlan& plan, const FilePart& part) {
  return std::make_unique<CsvReader>(plan, part);
}

}  // namespace fleuve::engine
