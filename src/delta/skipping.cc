#include "delta/skipping.h"

#include <simdjson.h>

#include <cmath>

#include "base/bytes.h"
#include "delta/table_source.h"

namespace fleuve::delta {

using plan::Expr;
using plan::ExprKind;
using plan::ExprPtr;
using types::DataType;
using types::TypeKind;
using types::Value;

std::string ColumnMappingMode(const Metadata& metadata) {
  const std::string* mode = FindIn(metadata.configuration, "delta.columnMapping.mode");
  return mode == nullptr ? "none" : AsciiLower(*mode);
}

std::string PhysicalName(const types::StructField& field, const Metadata& metadata) {
  if (ColumnMappingMode(metadata) == "none") {
    return field.name;
  }
  const Json& name = field.metadata["delta.columnMapping.physicalName"];
  return name.is_string() ? name.AsString() : field.name;
}

std::optional<int> CompareValues(const Value& a, const Value& b) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : (y < x ? 1 : 0); };
  if (a.is_null() || b.is_null()) {
    return std::nullopt;
  }
  try {
    // The alternatives are told apart by trying: both sides have one type by construction.
    return order(a.integer(), b.integer());
  } catch (const std::bad_variant_access&) {
  }
  try {
    const double x = a.real();
    const double y = b.real();
    if (std::isnan(x) || std::isnan(y)) {
      return std::isnan(x) && std::isnan(y) ? 0 : (std::isnan(x) ? 1 : -1);
    }
    return order(x, y);
  } catch (const std::bad_variant_access&) {
  }
  try {
    return order(a.decimal(), b.decimal());
  } catch (const std::bad_variant_access&) {
  }
  try {
    return order(a.text(), b.text());
  } catch (const std::bad_variant_access&) {
  }
  try {
    return order(static_cast<int>(a.boolean()), static_cast<int>(b.boolean()));
  } catch (const std::bad_variant_access&) {
  }
  return std::nullopt;
}

namespace {

/// What is known of the values of an expression over the rows of a file.
struct Bounds {
  Value min;  ///< NULL = not known
  Value max;
  bool may_be_null = true;
  bool may_be_value = true;
};

/// Which outcomes a condition may have on some row.
struct Outcome {
  bool may_be_true = true;
  bool may_be_false = true;
  bool may_be_null = true;
};

/// Reads single members of a file's statistics.
class Statistics {
 public:
  explicit Statistics(const std::string& text) : padded_(text), present_(!text.empty()) {}

  std::optional<std::string> Raw(std::string_view member, const std::vector<std::string>& path) {
    if (!present_) {
      return std::nullopt;
    }
    try {
      simdjson::ondemand::document document = parser_.iterate(padded_);
      simdjson::ondemand::value value;
      if (document.find_field_unordered(member).get(value) != simdjson::SUCCESS) {
        return std::nullopt;
      }
      for (const std::string& part : path) {
        simdjson::ondemand::object object;
        if (value.get_object().get(object) != simdjson::SUCCESS) {
          return std::nullopt;
        }
        // Keys are compared unescaped: names with quotes or backslashes are rare but real.
        bool found = false;
        for (auto field : object) {
          const std::string_view key = field.unescaped_key();
          if (key == part) {
            value = field.value();
            found = true;
            break;
          }
        }
        if (!found) {
          return std::nullopt;
        }
      }
      if (value.is_null()) {
        return std::nullopt;
      }
      if (value.type() == simdjson::ondemand::json_type::string) {
        is_string_ = true;
        return std::string(std::string_view(value.get_string()));
      }
      is_string_ = false;
      return std::string(TrimAscii(std::string_view(value.raw_json_token())));
    } catch (const simdjson::simdjson_error&) {
      present_ = false;
      return std::nullopt;
    }
  }
  std::optional<std::int64_t> Integer(std::string_view member, const std::vector<std::string>& path) {
    const auto text = Raw(member, path);
    if (!text) {
      return std::nullopt;
    }
    char* end = nullptr;
    const long long value = std::strtoll(text->c_str(), &end, 10);
    return end != text->c_str() && *end == '\0' ? std::optional<std::int64_t>(value) : std::nullopt;
  }
  /// A bound as a value of `type`; NULL where there is none.
  Value Bound(std::string_view member, const std::vector<std::string>& path, const DataType& type) {
    const auto text = Raw(member, path);
    if (!text) {
      return Value();
    }
    switch (type.kind()) {
      case TypeKind::kString:
      case TypeKind::kVarchar:
      case TypeKind::kChar:
        return is_string_ ? Value(*text) : Value();
      case TypeKind::kByte:
      case TypeKind::kShort:
      case TypeKind::kInt:
      case TypeKind::kLong:
      case TypeKind::kFloat:
      case TypeKind::kDouble:
      case TypeKind::kDecimal:
      case TypeKind::kDate:
      case TypeKind::kTimestamp:
      case TypeKind::kTimestampNtz: {
        auto value = ParsePartitionValue(*text, type);
        return value.ok() ? *std::move(value) : Value();
      }
      default:
        return Value();
    }
  }

 private:
  simdjson::ondemand::parser parser_;
  simdjson::padded_string padded_;
  bool present_;
  bool is_string_ = false;
};

class Evaluator {
 public:
  Evaluator(const std::map<plan::AttributeId, FileFilter::Column>& columns, const PartitionValues& partitions,
            Statistics* statistics)
      : columns_(columns), partitions_(partitions), statistics_(statistics) {}

  Outcome Condition(const ExprPtr& expr) {
    if (!expr->deterministic || expr->kind == ExprKind::kSubquery) {
      return {};
    }
    if (expr->kind == ExprKind::kLiteral) {
      if (expr->value.is_null()) {
        return {false, false, true};
      }
      return expr->type.Is(TypeKind::kBoolean) ? Outcome{expr->value.boolean(), !expr->value.boolean(), false}
                                               : Outcome{};
    }
    if (expr->kind == ExprKind::kAttribute) {
      const Bounds b = Values(expr);
      if (!b.min.is_null() && b.min == b.max && expr->type.Is(TypeKind::kBoolean)) {
        return {b.min.boolean(), !b.min.boolean(), b.may_be_null};
      }
      return {b.may_be_value, b.may_be_value, b.may_be_null};
    }
    if (expr->kind != ExprKind::kCall) {
      return {};
    }
    const std::string& f = expr->function;
    const auto& c = expr->children;
    if (f == "and" || f == "or") {
      bool is_and = f == "and";
      // For `or` both are negated: a or b = not (not a and not b).
      Outcome all{!is_and ? false : true, is_and ? false : true, false};
      bool first = true;
      for (const ExprPtr& child : c) {
        const Outcome o = Condition(child);
        if (first) {
          all = o;
          first = false;
          continue;
        }
        if (is_and) {
          all = {all.may_be_true && o.may_be_true, all.may_be_false || o.may_be_false,
                 (all.may_be_null && (o.may_be_null || o.may_be_true)) || (o.may_be_null && all.may_be_true)};
        } else {
          all = {all.may_be_true || o.may_be_true, all.may_be_false && o.may_be_false,
                 (all.may_be_null && (o.may_be_null || o.may_be_false)) || (o.may_be_null && all.may_be_false)};
        }
      }
      return all;
    }
    if (f == "not" && c.size() == 1) {
      const Outcome o = Condition(c[0]);
      return {o.may_be_false, o.may_be_true, o.may_be_null};
    }
    if ((f == "isnull" || f == "isnotnull") && c.size() == 1) {
      const Bounds b = Values(c[0]);
      const Outcome is_null{b.may_be_null, b.may_be_value, false};
      return f == "isnull" ? is_null : Outcome{is_null.may_be_false, is_null.may_be_true, false};
    }
    if (f == "in" && c.size() >= 2) {
      Outcome any{false, true, false};
      for (std::size_t i = 1; i < c.size(); ++i) {
        const Outcome o = Compare("eq", Values(c[0]), Values(c[i]));
        any.may_be_true = any.may_be_true || o.may_be_true;
        any.may_be_false = any.may_be_false && o.may_be_false;
        any.may_be_null = any.may_be_null || o.may_be_null;
      }
      return any;
    }
    if (c.size() == 2 && (f == "eq" || f == "ne" || f == "lt" || f == "le" || f == "gt" || f == "ge")) {
      return Compare(f, Values(c[0]), Values(c[1]));
    }
    if (f == "eqnullsafe" && c.size() == 2) {
      const Bounds a = Values(c[0]);
      const Bounds b = Values(c[1]);
      const Outcome o = Compare("eq", a, b);
      const bool both_null = a.may_be_null && b.may_be_null;
      const bool one_null = (a.may_be_null && b.may_be_value) || (b.may_be_null && a.may_be_value);
      return {o.may_be_true || both_null, o.may_be_false || one_null, false};
    }
    return {};
  }

 private:
  static Outcome Compare(const std::string& f, const Bounds& a, const Bounds& b) {
    Outcome o;
    o.may_be_null = a.may_be_null || b.may_be_null;
    if (!a.may_be_value || !b.may_be_value) {
      return {false, false, true};
    }
    // Orderings that some pair of values may show.
    bool less = true;
    bool equal = true;
    bool greater = true;
    if (const auto order = CompareValues(a.min, b.max)) {  // a.min against b.max
      if (*order > 0) {
        equal = less = false;
      } else if (*order == 0) {
        less = false;
      }
    }
    if (const auto order = CompareValues(a.max, b.min)) {
      if (*order < 0) {
        equal = greater = false;
      } else if (*order == 0) {
        greater = false;
      }
    }
    if (f == "eq") {
      o.may_be_true = equal;
      o.may_be_false = less || greater;
    } else if (f == "ne") {
      o.may_be_true = less || greater;
      o.may_be_false = equal;
    } else if (f == "lt") {
      o.may_be_true = less;
      o.may_be_false = equal || greater;
    } else if (f == "le") {
      o.may_be_true = less || equal;
      o.may_be_false = greater;
    } else if (f == "gt") {
      o.may_be_true = greater;
      o.may_be_false = equal || less;
    } else {
      o.may_be_true = greater || equal;
      o.may_be_false = less;
    }
    return o;
  }

  Bounds Values(const ExprPtr& expr) {
    switch (expr->kind) {
      case ExprKind::kLiteral: {
        Bounds b;
        b.min = expr->value;
        b.max = expr->value;
        b.may_be_null = expr->value.is_null();
        b.may_be_value = !expr->value.is_null();
        return b;
      }
      case ExprKind::kAttribute:
      case ExprKind::kGetField:
        return Column(expr);
      case ExprKind::kCast:
        return Cast(expr);
      default:
        return {};
    }
  }

  Bounds Cast(const ExprPtr& expr) {
    const DataType& from = expr->children[0]->type;
    const DataType& to = expr->type;
    Bounds b = Values(expr->children[0]);
    const auto whole = [](const DataType& t) { return t.IsIntegral(); };
    if (from.IsString() && to.IsString()) {
      return b;
    }
    if (whole(from) && whole(to) && Rank(from) <= Rank(to)) {
      return b;
    }
    if (from.Is(TypeKind::kFloat) && to.Is(TypeKind::kDouble)) {
      return b;
    }
    if (whole(from) && to.Is(TypeKind::kDecimal) && to.precision() - to.scale() >= 19) {
      types::Int128 scale = 1;
      for (int i = 0; i < to.scale(); ++i) {
        scale *= 10;
      }
      if (!b.min.is_null()) {
        b.min = Value(static_cast<types::Int128>(b.min.integer()) * scale);
      }
      if (!b.max.is_null()) {
        b.max = Value(static_cast<types::Int128>(b.max.integer()) * scale);
      }
      return b;
    }
    if (whole(from) && Rank(from) <= 2 && to.Is(TypeKind::kDouble)) {
      if (!b.min.is_null()) {
        b.min = Value(static_cast<double>(b.min.integer()));
      }
      if (!b.max.is_null()) {
        b.max = Value(static_cast<double>(b.max.integer()));
      }
      return b;
    }
    if (from.Is(TypeKind::kDecimal) && to.Is(TypeKind::kDecimal) && to.scale() == from.scale() &&
        to.precision() >= from.precision()) {
      return b;
    }
    return {};
  }

  static int Rank(const DataType& type) {
    switch (type.kind()) {
      case TypeKind::kByte:
        return 0;
      case TypeKind::kShort:
        return 1;
      case TypeKind::kInt:
        return 2;
      default:
        return 3;
    }
  }

  Bounds Column(const ExprPtr& expr) {
    // Down to the column; field ordinals from the inside out.
    std::vector<int> ordinals;
    const Expr* at = expr.get();
    while (at->kind == ExprKind::kGetField) {
      ordinals.push_back(at->ordinal);
      at = at->children[0].get();
    }
    if (at->kind != ExprKind::kAttribute || at->is_outer) {
      return {};
    }
    const auto found = columns_.find(at->attribute.id);
    if (found == columns_.end()) {
      return {};
    }
    const FileFilter::Column& column = found->second;
    if (column.is_partition) {
      for (const auto& [name, text] : partitions_) {
        if (name == column.physical_name) {
          auto value = ParsePartitionValue(text, column.type);
          if (!value.ok()) {
            return {};
          }
          Bounds b;
          b.min = *value;
          b.max = *value;
          b.may_be_null = value->is_null();
          b.may_be_value = !value->is_null();
          return b;
        }
      }
      return {};
    }
    if (statistics_ == nullptr) {
      return {};
    }
    std::vector<std::string> path{column.physical_name};
    const DataType* type = &column.type;
    bool parent_nullable = false;
    for (std::size_t i = ordinals.size(); i-- > 0;) {
      if (!type->Is(TypeKind::kStruct) || static_cast<std::size_t>(ordinals[i]) >= type->fields().size()) {
        return {};
      }
      const types::StructField& field = type->fields()[static_cast<std::size_t>(ordinals[i])];
      const Json& physical = field.metadata["delta.columnMapping.physicalName"];
      path.push_back(physical.is_string() ? physical.AsString() : field.name);
      type = &field.type;
      parent_nullable = true;
    }
    Bounds b;
    if (type->IsNested() || type->Is(TypeKind::kVariant)) {
      return b;
    }
    if (type->Is(TypeKind::kString) && type->collation() != "UTF8_BINARY") {
      return b;  // statistics are in byte order
    }
    // NaN is the greatest value, in statistics too. A writer that leaves it out of `maxValues` breaks the protocol, and
    // such a file is skipped as every reader skips it.
    b.min = statistics_->Bound("minValues", path, *type);
    b.max = statistics_->Bound("maxValues", path, *type);
    if ((type->Is(TypeKind::kTimestamp) || type->Is(TypeKind::kTimestampNtz)) && !b.max.is_null()) {
      // Bounds are cut to milliseconds.
      b.max = Value(b.max.integer() + 999);
    }
    const auto nulls = statistics_->Integer("nullCount", path);
    const auto records = statistics_->Integer("numRecords", {});
    if (nulls) {
      b.may_be_null = *nulls != 0;
      b.may_be_value = !records || *nulls != *records;
    }
    // Nested nulls are counted where the parent is null only by some writers.
    if (parent_nullable) {
      b.may_be_null = true;
    }
    return b;
  }

  const std::map<plan::AttributeId, FileFilter::Column>& columns_;
  const PartitionValues& partitions_;
  Statistics* statistics_;
};

}  // namespace

Result<FileFilter> FileFilter::Make(const Metadata& metadata, const types::Schema& schema,
                                    const std::vector<ExprPtr>& filters, const std::vector<plan::Attribute>& columns) {
  FileFilter filter;
  if (columns.size() != schema.fields().size()) {
    return Error::Internal("a scan of " + std::to_string(schema.fields().size()) + " columns was given " +
                           std::to_string(columns.size()) + " attributes");
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const types::StructField& field = schema.fields()[i];
    Column column{PhysicalName(field, metadata), field.type, false};
    for (const std::string& name : metadata.partition_columns) {
      column.is_partition = column.is_partition || EqualsIgnoreAsciiCase(name, field.name);
    }
    filter.columns_.emplace(columns[i].id, std::move(column));
  }
  for (const ExprPtr& expr : filters) {
    filter.filters_.push_back(expr);
    plan::VisitExpr(expr, [&](const Expr& node) {
      if (node.kind == ExprKind::kAttribute) {
        const auto at = filter.columns_.find(node.attribute.id);
        filter.needs_statistics_ = filter.needs_statistics_ || at == filter.columns_.end() || !at->second.is_partition;
      } else if (node.kind == ExprKind::kSubquery) {
        filter.needs_statistics_ = true;
      }
    });
  }
  return filter;
}

bool FileFilter::MayMatch(const AddFile& file) const {
  if (!PartitionMayMatch(file.partition_values)) {
    return false;
  }
  if (!needs_statistics_ || file.stats.empty()) {
    return true;
  }
  Statistics statistics(file.stats);
  Evaluator evaluator(columns_, file.partition_values, &statistics);
  for (const ExprPtr& expr : filters_) {
    if (!evaluator.Condition(expr).may_be_true) {
      return false;
    }
  }
  return true;
}

bool FileFilter::PartitionMayMatch(const PartitionValues& values) const {
  Evaluator evaluator(columns_, values, nullptr);
  for (const ExprPtr& expr : filters_) {
    if (!evaluator.Condition(expr).may_be_true) {
      return false;
    }
  }
  return true;
}

}  // namespace fleuve::delta
