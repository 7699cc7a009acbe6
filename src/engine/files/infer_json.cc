// Schemas of JSON files by Spark's rules.

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <random>

#include "engine/files/byte_stream_internal.h"
#include "engine/files/json_scanner_internal.h"
#include "engine/files/row_target_internal.h"
#include "engine/infer.h"
#include "types/numeric_rank.h"
#include "types/value.h"

namespace fleuve::engine {

namespace {

using types::DataType;
using types::StructField;
using types::TypeKind;

bool IsSortedStruct(const DataType& type) { return type.Is(TypeKind::kStruct); }

DataType SortedStruct(std::vector<StructField> fields) {
  std::stable_sort(fields.begin(), fields.end(),
                   [](const StructField& a, const StructField& b) { return a.name < b.name; });
  return DataType::Struct(std::move(fields));
}

DataType DecimalOf(const DataType& integral) {
  switch (integral.kind()) {
    case TypeKind::kByte:
      return DataType::Decimal(3, 0);
    case TypeKind::kShort:
      return DataType::Decimal(5, 0);
    case TypeKind::kInt:
      return DataType::Decimal(10, 0);
    default:
      return DataType::Decimal(20, 0);
  }
}

DataType MergeDecimals(const DataType& a, const DataType& b) {
  const int scale = std::max(a.scale(), b.scale());
  const int range = std::max(a.precision() - a.scale(), b.precision() - b.scale());
  if (range + scale > 38) {
    return DataType::Double();
  }
  return DataType::Decimal(range + scale, scale);
}

DataType MergeStructs(const DataType& a, const DataType& b) {
  std::vector<StructField> merged;
  const auto& x = a.fields();
  const auto& y = b.fields();
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < x.size() || k < y.size()) {
    if (k == y.size() || (i < x.size() && x[i].name < y[k].name)) {
      merged.push_back(x[i++]);
    } else if (i == x.size() || y[k].name < x[i].name) {
      merged.push_back(y[k++]);
    } else {
      merged.push_back({x[i].name, MergeJsonTypes(x[i].type, y[k].type), true, {}});
      ++i;
      ++k;
    }
  }
  return DataType::Struct(std::move(merged));
}

/// Infers the type of one document after the other.
class Inference {
 public:
  Inference(const JsonOptions& options, const std::string& corrupt_column)
      : options_(options),
        corrupt_column_(corrupt_column),
        quick_(!options.prefers_decimal && !options.infer_timestamp),
        scanner_(options) {}

  /// Adds one record. The error of mode FAILFAST, or nothing.
  std::optional<std::string> Add(std::string_view record) {
    scanner_.Reset(record);
    if (!scanner_.SkipBlank()) {
      return std::nullopt;
    }
    const bool valid = simdjson::validate_utf8(record.data(), record.size());
    // Most records say nothing new.
    if (valid && quick_ && root_.Is(TypeKind::kStruct)) {
      if (scanner_.Begin() == JsonToken::kObject && Covers(root_, JsonToken::kObject)) {
        return std::nullopt;
      }
      depth_ = 0;
      scanner_.Reset(record);
    }
    std::optional<DataType> type;
    if (valid) {
      type = Value();
    }
    if (!type) {
      return Corrupt(scanner_.error() != nullptr ? scanner_.error() : "invalid UTF-8");
    }
    MergeRoot(*type);
    return std::nullopt;
  }

  DataType Finish() const {
    DataType root = root_;
    while (root.Is(TypeKind::kArray)) {
      root = root.element();
    }
    const std::optional<DataType> canonical = Canonical(root);
    if (!canonical || !canonical->Is(TypeKind::kStruct)) {
      return DataType::Struct({});
    }
    return *canonical;
  }

  const std::string& repeated() const { return repeated_; }

 private:
  std::optional<std::string> Corrupt(const char* reason) {
    switch (options_.mode) {
      case ParseMode::kFailFast:
        return std::string(reason);
      case ParseMode::kDropMalformed:
        return std::nullopt;
      case ParseMode::kPermissive:
        break;
    }
    if (!corrupt_column_.empty()) {
      MergeRoot(DataType::Struct({{corrupt_column_, DataType::String(), true, {}}}));
    }
    return std::nullopt;
  }

  void MergeRoot(DataType type) {
    while (type.Is(TypeKind::kArray)) {
      type = type.element();
    }
    const bool old_struct = root_.Is(TypeKind::kStruct);
    const bool new_struct = type.Is(TypeKind::kStruct);
    if (type.Is(TypeKind::kVoid)) {
      return;
    }
    if (root_.Is(TypeKind::kVoid)) {
      root_ = type;
    } else if (old_struct && new_struct) {
      if (root_ == type) {
        return;
      }
      root_ = MergeStructs(root_, type);
    } else if (old_struct || new_struct) {
      // A document that is no object among objects is malformed.
      const DataType kept = old_struct ? root_ : type;
      root_ = kept;
      if (options_.mode == ParseMode::kPermissive && !corrupt_column_.empty()) {
        root_ = MergeStructs(kept, DataType::Struct({{corrupt_column_, DataType::String(), true, {}}}));
      }
    } else {
      root_ = MergeJsonTypes(root_, type);
    }
  }

  /// True where the value at the scanner's place, which begins with `token`, is of a type that `known` holds already.
  bool Covers(const DataType& known, JsonToken token) {
    if (known.IsString()) {
      return scanner_.SkipRest(token);
    }
    switch (token) {
      case JsonToken::kNull:
        return true;
      case JsonToken::kTrue:
      case JsonToken::kFalse:
        return known.Is(TypeKind::kBoolean);
      case JsonToken::kInteger:
        return (known.Is(TypeKind::kLong) && scanner_.number().size() < 19) || known.Is(TypeKind::kDouble);
      case JsonToken::kFraction:
        return known.Is(TypeKind::kDouble);
      case JsonToken::kString: {
        std::string_view text;
        return scanner_.String(&text) && text.empty();
      }
      case JsonToken::kArray: {
        if (!known.Is(TypeKind::kArray) || ++depth_ > JsonScanner::kMaxDepth) {
          return false;
        }
        scanner_.Open();
        for (bool first = true;; first = false) {
          const int got = scanner_.NextElement(first);
          if (got <= 0) {
            --depth_;
            return got == 0;
          }
          if (!Covers(known.element(), scanner_.Begin())) {
            return false;
          }
        }
      }
      case JsonToken::kObject: {
        if (!known.Is(TypeKind::kStruct) || ++depth_ > JsonScanner::kMaxDepth) {
          return false;
        }
        scanner_.Open();
        const auto& fields = known.fields();
        for (bool first = true;; first = false) {
          std::string_view name;
          const int got = scanner_.NextName(first, &name);
          if (got <= 0) {
            --depth_;
            return got == 0;
          }
          const auto field = std::lower_bound(fields.begin(), fields.end(), name,
                                              [](const StructField& a, std::string_view b) { return a.name < b; });
          if (field == fields.end() || field->name != name || !Covers(field->type, scanner_.Begin())) {
            return false;
          }
        }
      }
      case JsonToken::kError:
        return false;
    }
    return false;
  }

  std::optional<DataType> Value() {
    const JsonToken token = scanner_.Begin();
    switch (token) {
      case JsonToken::kError:
        return std::nullopt;
      case JsonToken::kNull:
        return DataType::Void();
      case JsonToken::kTrue:
      case JsonToken::kFalse:
        return options_.primitives_as_string ? DataType::String() : DataType::Boolean();
      case JsonToken::kString: {
        std::string_view text;
        if (!scanner_.String(&text)) {
          return std::nullopt;
        }
        return TextType(text);
      }
      case JsonToken::kInteger:
      case JsonToken::kFraction:
        return NumberType(token);
      case JsonToken::kArray:
        return ArrayType();
      case JsonToken::kObject:
        return ObjectType();
    }
    return std::nullopt;
  }

  DataType TextType(std::string_view text) const {
    if (text.empty()) {
      return DataType::Void();
    }
    if (options_.prefers_decimal) {
      if (auto decimal = types::DecimalFromString(text); decimal.ok()) {
        return DecimalType(decimal->first, decimal->second);
      }
    }
    if (options_.infer_timestamp && options_.times.ParseTimestamp(text)) {
      return DataType::Timestamp();
    }
    return DataType::String();
  }

  static DataType DecimalType(types::Int128 value, int scale) {
    int precision = 0;
    while (value != 0) {
      value /= 10;
      ++precision;
    }
    precision = std::max(std::max(precision, scale), 1);
    return precision <= 38 ? DataType::Decimal(precision, scale) : DataType::Double();
  }

  DataType NumberType(JsonToken token) const {
    if (options_.primitives_as_string) {
      return DataType::String();
    }
    const std::string_view text = scanner_.number();
    if (token == JsonToken::kInteger) {
      std::int64_t value = 0;
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (code == std::errc() && end == text.data() + text.size()) {
        return DataType::Long();
      }
      if (auto decimal = types::DecimalFromString(text); decimal.ok()) {
        return DecimalType(decimal->first, decimal->second);
      }
      return DataType::Double();
    }
    if (options_.prefers_decimal) {
      if (auto decimal = types::DecimalFromString(text); decimal.ok()) {
        return DecimalType(decimal->first, decimal->second);
      }
    }
    return DataType::Double();
  }

  std::optional<DataType> ArrayType() {
    if (++depth_ > JsonScanner::kMaxDepth) {
      --depth_;
      return std::nullopt;
    }
    scanner_.Open();
    DataType element;
    bool first = true;
    for (;;) {
      const int got = scanner_.NextElement(first);
      if (got <= 0) {
        --depth_;
        return got == 0 ? std::optional(DataType::Array(element)) : std::nullopt;
      }
      first = false;
      const auto type = Value();
      if (!type) {
        --depth_;
        return std::nullopt;
      }
      element = MergeJsonTypes(element, *type);
    }
  }

  std::optional<DataType> ObjectType() {
    if (++depth_ > JsonScanner::kMaxDepth) {
      --depth_;
      return std::nullopt;
    }
    scanner_.Open();
    std::vector<StructField> fields;
    bool first = true;
    for (;;) {
      std::string_view name;
      const int got = scanner_.NextName(first, &name);
      if (got < 0) {
        --depth_;
        return std::nullopt;
      }
      if (got == 0) {
        break;
      }
      first = false;
      std::string kept(name);
      const auto type = Value();
      if (!type) {
        --depth_;
        return std::nullopt;
      }
      fields.push_back({std::move(kept), *type, true, {}});
    }
    --depth_;
    DataType sorted = SortedStruct(std::move(fields));
    // Equal names within one object: one field of a common type.
    const auto& all = sorted.fields();
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (all[i].name == all[i - 1].name) {
        repeated_ = all[i].name;
        std::map<std::string, DataType> merged;
        for (const StructField& field : all) {
          auto [place, is_new] = merged.emplace(field.name, field.type);
          if (!is_new) {
            place->second = MergeJsonTypes(place->second, field.type);
          }
        }
        std::vector<StructField> unique;
        for (auto& [name, type] : merged) {
          unique.push_back({name, type, true, {}});
        }
        return DataType::Struct(std::move(unique));
      }
    }
    return sorted;
  }

  /// Columns of no value become strings (or go, with dropFieldIfAllNull); empty structs go.
  std::optional<DataType> Canonical(const DataType& type) const {
    switch (type.kind()) {
      case TypeKind::kVoid:
        return options_.drop_all_null ? std::nullopt : std::optional(DataType::String());
      case TypeKind::kArray: {
        auto element = Canonical(type.element());
        return element ? std::optional(DataType::Array(*element)) : std::nullopt;
      }
      case TypeKind::kStruct: {
        std::vector<StructField> fields;
        for (const StructField& field : type.fields()) {
          if (field.name.empty()) {
            continue;
          }
          if (auto canonical = Canonical(field.type)) {
            fields.push_back({field.name, *canonical, true, {}});
          }
        }
        return fields.empty() ? std::nullopt : std::optional(DataType::Struct(std::move(fields)));
      }
      default:
        return type;
    }
  }

  const JsonOptions& options_;
  const std::string& corrupt_column_;
  const bool quick_;
  JsonScanner scanner_;
  DataType root_;
  /// A name that an object has twice.
  std::string repeated_;
  int depth_ = 0;
};

}  // namespace

DataType MergeJsonTypes(const DataType& a, const DataType& b) {
  if (a == b || b.Is(TypeKind::kVoid)) {
    return a;
  }
  if (a.Is(TypeKind::kVoid)) {
    return b;
  }
  if (types::IntegerRank(a.kind()) != 0 && types::IntegerRank(b.kind()) != 0) {
    return types::IntegerRank(a.kind()) > types::IntegerRank(b.kind()) ? a : b;
  }
  const auto is_real = [](const DataType& t) { return t.Is(TypeKind::kDouble) || t.Is(TypeKind::kFloat); };
  if (is_real(a) && is_real(b)) {
    return DataType::Double();
  }
  if ((is_real(a) && types::IntegerRank(b.kind()) != 0) || (is_real(b) && types::IntegerRank(a.kind()) != 0)) {
    return DataType::Double();
  }
  if ((is_real(a) && b.Is(TypeKind::kDecimal)) || (is_real(b) && a.Is(TypeKind::kDecimal))) {
    return DataType::Double();
  }
  if (a.Is(TypeKind::kDecimal) && b.Is(TypeKind::kDecimal)) {
    return MergeDecimals(a, b);
  }
  if (a.Is(TypeKind::kDecimal) && types::IntegerRank(b.kind()) != 0) {
    return MergeDecimals(a, DecimalOf(b));
  }
  if (b.Is(TypeKind::kDecimal) && types::IntegerRank(a.kind()) != 0) {
    return MergeDecimals(DecimalOf(a), b);
  }
  if (a.IsDateTime() && b.IsDateTime()) {
    return a.Is(TypeKind::kDate) ? b : b.Is(TypeKind::kDate) ? a : DataType::Timestamp();
  }
  if (IsSortedStruct(a) && IsSortedStruct(b)) {
    return MergeStructs(a, b);
  }
  if (a.Is(TypeKind::kArray) && b.Is(TypeKind::kArray)) {
    return DataType::Array(MergeJsonTypes(a.element(), b.element()));
  }
  return DataType::String();
}

Result<types::Schema> InferJson(const std::vector<plan::ScanFile>& files, const InferOptions& options) {
  FLEUVE_ASSIGN(const JsonOptions json, MakeJsonOptions(options.options, options.session_zone));
  Inference inference(json, options.corrupt_record_column);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> fraction(0.0, 1.0);
  std::int64_t bytes = 0;
  const auto add = [&](const plan::ScanFile& file, std::string_view record) -> Result<void> {
    if (json.sampling_ratio < 1.0 && fraction(random) >= json.sampling_ratio) {
      return {};
    }
    bytes += static_cast<std::int64_t>(record.size());
    if (const auto failure = inference.Add(record)) {
      return MalformedRecord(file.uri, record, *failure);
    }
    return {};
  };
  for (const plan::ScanFile& file : files) {
    if (options.token != nullptr && options.token->cancelled()) {
      return Error::Cancelled();
    }
    if (options.byte_limit > 0 && bytes >= options.byte_limit) {
      break;
    }
    const auto skip = [&](const Error& error) {
      return (json.ignore_missing_files && error.kind() == ErrorKind::kNotFound) ||
             (json.ignore_corrupt_files && error.kind() != ErrorKind::kNotFound);
    };
    if (json.multi_line) {
      auto text = ReadWholeFile(file.path, json.encoding);
      if (!text.ok()) {
        if (skip(text.error())) {
          continue;
        }
        return FailedReadFile(file.uri, text.error());
      }
      FLEUVE_TRY(add(file, *text));
      continue;
    }
    auto stream = OpenFile(file.path, 0, json.encoding);
    if (!stream.ok()) {
      if (skip(stream.error())) {
        continue;
      }
      return FailedReadFile(file.uri, stream.error());
    }
    LineReader lines(std::move(stream).value(), 0, -1, json.line_separator);
    std::string_view line;
    for (std::int64_t count = 0;; ++count) {
      auto more = lines.Next(&line);
      if (!more.ok()) {
        if (skip(more.error())) {
          break;
        }
        return FailedReadFile(file.uri, more.error());
      }
      if (!*more || (options.byte_limit > 0 && bytes >= options.byte_limit)) {
        break;
      }
      FLEUVE_TRY(add(file, line));
      if (count % 4096 == 0 && options.token != nullptr && options.token->cancelled()) {
        return Error::Cancelled();
      }
    }
  }
  if (const std::string& name = inference.repeated(); !name.empty()) {
    return Error(ErrorKind::kInvalidArgument, "COLUMN_ALREADY_EXISTS",
                 "The column `" + name + "` already exists. Choose another name or rename the existing column.")
        .With("columnName", "`" + name + "`");
  }
  return inference.Finish();
}

}  // namespace fleuve::engine
