// Schemas of CSV files by Spark's rules.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "engine/files/byte_stream_internal.h"
#include "engine/files/csv_record_internal.h"
#include "engine/files/text_value_internal.h"
#include "engine/infer.h"
#include "types/value.h"

namespace fleuve::engine {

namespace {

using types::DataType;
using types::TypeKind;

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// The type that holds values of both, or nullopt: text.
std::optional<DataType> Compatible(const DataType& a, const DataType& b) {
  if (a == b || b.Is(TypeKind::kVoid)) {
    return a;
  }
  if (a.Is(TypeKind::kVoid)) {
    return b;
  }
  const auto rank = [](const DataType& type) {
    return type.Is(TypeKind::kInt)       ? 1
           : type.Is(TypeKind::kLong)    ? 2
           : type.Is(TypeKind::kDecimal) ? 3
           : type.Is(TypeKind::kDouble)  ? 4
                                         : 0;
  };
  if (rank(a) != 0 && rank(b) != 0) {
    if (a.Is(TypeKind::kDecimal) || b.Is(TypeKind::kDecimal)) {
      if (a.Is(TypeKind::kDouble) || b.Is(TypeKind::kDouble)) {
        return DataType::Double();
      }
      const auto decimal = [](const DataType& type) {
        return type.Is(TypeKind::kInt)    ? DataType::Decimal(10, 0)
               : type.Is(TypeKind::kLong) ? DataType::Decimal(20, 0)
                                          : type;
      };
      const DataType x = decimal(a);
      const DataType y = decimal(b);
      const int scale = std::max(x.scale(), y.scale());
      const int range = std::max(x.precision() - x.scale(), y.precision() - y.scale());
      return range + scale > 38 ? DataType::Double() : DataType::Decimal(range + scale, scale);
    }
    return rank(a) > rank(b) ? a : b;
  }
  if (a.IsDateTime() && b.IsDateTime()) {
    return a.Is(TypeKind::kDate) ? b : b.Is(TypeKind::kDate) ? a : DataType::Timestamp();
  }
  return std::nullopt;
}

class FieldInference {
 public:
  explicit FieldInference(const CsvOptions& options) : options_(options) {}

  DataType Infer(const DataType& so_far, std::string_view text) const {
    if (text.empty() || text == options_.null_value || so_far.IsString()) {
      return so_far;
    }
    DataType found;
    switch (so_far.kind()) {
      case TypeKind::kVoid:
      case TypeKind::kInt:
        found = Integer(text);
        break;
      case TypeKind::kLong:
        found = Long(text);
        break;
      case TypeKind::kDecimal:
        found = Decimal(text);
        break;
      case TypeKind::kDouble:
        found = Double(text);
        break;
      case TypeKind::kDate:
        found = Date(text);
        break;
      case TypeKind::kTimestampNtz:
      case TypeKind::kTimestamp:
        found = Timestamp(text);
        break;
      case TypeKind::kBoolean:
        found = Boolean(text);
        break;
      default:
        found = DataType::String();
        break;
    }
    const auto both = Compatible(so_far, found);
    return both ? *both : DataType::String();
  }

 private:
  DataType Integer(std::string_view text) const {
    std::int64_t value = 0;
    if (ParseJavaInteger(text, &value) && value >= INT32_MIN && value <= INT32_MAX) {
      return DataType::Int();
    }
    return Long(text);
  }
  DataType Long(std::string_view text) const {
    std::int64_t value = 0;
    return ParseJavaInteger(text, &value) ? DataType::Long() : Decimal(text);
  }
  DataType Decimal(std::string_view text) const {
    const auto parsed = types::DecimalFromString(text);
    if (parsed.ok() && parsed->second <= 0) {
      int precision = 0;
      for (types::Int128 value = parsed->first; value != 0; value /= 10) {
        ++precision;
      }
      return DataType::Decimal(std::max(precision, 1), 0);
    }
    return Double(text);
  }
  DataType Double(std::string_view text) const {
    double value = 0;
    if (ParseJavaDouble(text, &value) || text == options_.nan_value || text == options_.positive_infinity ||
        text == options_.negative_infinity) {
      return DataType::Double();
    }
    return options_.prefer_date ? Date(text) : Timestamp(text);
  }
  DataType Date(std::string_view text) const { return IsDate(text) ? DataType::Date() : Timestamp(text); }
  bool IsDate(std::string_view text) const {
    if (options_.times.has_date_pattern()) {
      return options_.times.ParseDate(text).has_value();
    }
    // Without a pattern the date must stand alone: a time behind it makes a timestamp.
    return text.find_first_of("T :") == std::string_view::npos && options_.times.ParseDate(text).has_value();
  }
  DataType Timestamp(std::string_view text) const {
    if (options_.times.ParseTimestamp(text)) {
      return DataType::Timestamp();
    }
    return Boolean(text);
  }
  DataType Boolean(std::string_view text) const {
    const std::string lower = Lower(text);
    return lower == "true" || lower == "false" ? DataType::Boolean() : DataType::String();
  }

  const CsvOptions& options_;
};

}  // namespace

std::vector<std::string> CsvColumnNames(const std::vector<std::string>& header, bool case_sensitive,
                                        const std::string& null_value) {
  std::map<std::string, int> seen;
  for (const std::string& name : header) {
    if (!name.empty()) {
      ++seen[case_sensitive ? name : Lower(name)];
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i].empty() || header[i] == null_value) {
      names.push_back("_c" + std::to_string(i));
    } else if (seen[case_sensitive ? header[i] : Lower(header[i])] > 1) {
      names.push_back(header[i] + std::to_string(i));
    } else {
      names.push_back(header[i]);
    }
  }
  return names;
}

Result<types::Schema> InferCsv(const std::vector<plan::ScanFile>& files, const InferOptions& options) {
  FLEUVE_ASSIGN(CsvOptions csv, MakeCsvOptions(options.options, options.session_zone));
  const FieldInference inference(csv);
  std::vector<std::string> names;
  std::vector<DataType> kinds;
  bool named = false;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> fraction(0.0, 1.0);
  std::int64_t bytes = 0;
  bool first_file = true;
  for (const plan::ScanFile& file : files) {
    if (options.token != nullptr && options.token->cancelled()) {
      return Error::Cancelled();
    }
    if (options.byte_limit > 0 && bytes >= options.byte_limit) {
      break;
    }
    if (!first_file && !csv.infer_schema && named && !options.csv_merge_headers) {
      break;
    }
    auto stream = OpenFile(file.path, 0, csv.encoding);
    if (!stream.ok()) {
      if ((csv.ignore_missing_files && stream.error().kind() == ErrorKind::kNotFound) ||
          (csv.ignore_corrupt_files && stream.error().kind() != ErrorKind::kNotFound)) {
        continue;
      }
      return FailedReadFile(file.uri, stream.error());
    }
    CsvRecords records(csv, std::move(stream).value(), 0, -1);
    std::string_view record;
    CsvSplitter::Outcome outcome = CsvSplitter::Outcome::kOk;
    std::vector<std::size_t> places;
    bool header_seen = false;
    for (std::int64_t count = 0;; ++count) {
      auto more = records.Next(&record, &outcome);
      if (!more.ok()) {
        if (csv.ignore_corrupt_files) {
          break;
        }
        return more.error().condition().empty() ? more.error() : FailedReadFile(file.uri, more.error());
      }
      if (!*more) {
        break;
      }
      const auto& fields = records.splitter().fields();
      bytes += static_cast<std::int64_t>(record.size());
      if (!header_seen) {
        header_seen = true;
        std::vector<std::string> header;
        for (std::size_t i = 0; i < fields.size(); ++i) {
          header.push_back(csv.header ? std::string(fields[i].text) : "_c" + std::to_string(i));
        }
        const std::vector<std::string> safe = csv.header ? CsvColumnNames(header, false, csv.null_value) : header;
        if (!named) {
          named = true;
          names = safe;
          kinds.assign(names.size(), DataType::Void());
        }
        for (const std::string& name : safe) {
          auto place = std::find_if(names.begin(), names.end(),
                                    [&](const std::string& known) { return Lower(known) == Lower(name); });
          if (!options.csv_merge_headers) {
            places.push_back(places.size());
            continue;
          }
          if (place == names.end()) {
            names.push_back(name);
            kinds.push_back(DataType::Void());
            place = names.end() - 1;
          }
          places.push_back(static_cast<std::size_t>(place - names.begin()));
        }
        if (csv.header) {
          continue;
        }
      }
      if (!csv.infer_schema) {
        break;
      }
      if (csv.sampling_ratio < 1.0 && fraction(random) >= csv.sampling_ratio) {
        continue;
      }
      for (std::size_t i = 0; i < fields.size() && i < places.size(); ++i) {
        const std::size_t at = places[i];
        if (at >= kinds.size()) {
          continue;
        }
        std::string_view text = fields[i].text;
        if (text.empty()) {
          text = fields[i].is_empty_quoted ? std::string_view(csv.empty_value) : std::string_view(csv.null_value);
        }
        kinds[at] = inference.Infer(kinds[at], text);
      }
      if (options.byte_limit > 0 && bytes >= options.byte_limit) {
        break;
      }
      if (count % 4096 == 0 && options.token != nullptr && options.token->cancelled()) {
        return Error::Cancelled();
      }
    }
    first_file = first_file && !header_seen;
  }
  std::vector<types::StructField> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool text = !csv.infer_schema || kinds[i].Is(TypeKind::kVoid);
    columns.push_back({names[i], text ? DataType::String() : kinds[i], true, {}});
  }
  return DataType::Struct(std::move(columns));
}

}  // namespace fleuve::engine
