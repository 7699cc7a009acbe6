#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/bytes.h"
#include "delta/skipping.h"
#include "tables/file_statistics_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::StructField;
using types::TypeKind;
using types::Value;

namespace {

/// UTF-8 text cut to 32 characters; `is_max` keeps it an upper bound.
std::string CutText(const std::string& text, bool is_max) {
  constexpr std::size_t kMost = 32;
  std::size_t at = 0;
  std::size_t characters = 0;
  while (at < text.size() && characters < kMost) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
      ++at;
    }
    ++characters;
  }
  if (at >= text.size()) {
    return text;
  }
  std::string cut = text.substr(0, at);
  if (is_max) {
    cut += static_cast<unsigned char>(text[at]) < 0x7F ? "\x7F" : "\xF4\x8F\xBF\xBF";
  }
  return cut;
}

std::string MillisText(std::int64_t micros) {
  std::int64_t ms = micros / 1000;
  if (micros % 1000 < 0) {
    --ms;
  }
  std::int64_t seconds = ms / 1000;
  std::int64_t fraction = ms % 1000;
  if (fraction < 0) {
    fraction += 1000;
    --seconds;
  }
  std::string text = types::TimestampNtzToString(seconds * 1000000);
  text[text.find(' ')] = 'T';
  std::string digits = std::to_string(fraction);
  digits.insert(0, 3 - digits.size(), '0');
  return text + "." + digits;
}

/// A bound as JSON text; empty where it cannot be said.
std::string BoundText(const Value& value, const DataType& type, bool is_max) {
  std::string out;
  switch (type.kind()) {
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      return std::to_string(value.integer());
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      const double v = value.real();
      const std::string text =
          type.Is(TypeKind::kFloat) ? JavaFloatToString(static_cast<float>(v)) : JavaDoubleToString(v);
      return std::isfinite(v) ? text : "\"" + text + "\"";
    }
    case TypeKind::kDecimal:
      return types::DecimalToString(value.decimal(), type.scale());
    case TypeKind::kString:
      AppendJsonString(out, CutText(value.text(), is_max));
      return out;
    case TypeKind::kDate:
      return "\"" + types::DateToString(value.integer()) + "\"";
    case TypeKind::kTimestamp:
      return "\"" + MillisText(value.integer()) + "Z\"";
    case TypeKind::kTimestampNtz:
      return "\"" + MillisText(value.integer()) + "\"";
    default:
      return {};
  }
}

/// Nested JSON object of one member per leaf, in the leaves' order; leaves without a text are left out.
std::string NestedObject(const std::vector<StatisticsLeaf>& leaves,
                         const std::function<std::string(std::size_t)>& text) {
  struct Node {
    std::string name;
    std::vector<Node> children;
    std::string raw;  ///< of a leaf: its value as JSON
  };
  Node top;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    std::string raw = text(i);
    if (raw.empty()) {
      continue;
    }
    Node* at = &top;
    for (const std::string& part : leaves[i].path) {
      auto child =
          std::find_if(at->children.begin(), at->children.end(), [&](const auto& c) { return c.name == part; });
      if (child == at->children.end()) {
        at->children.push_back({part, {}, {}});
        child = std::prev(at->children.end());
      }
      at = &*child;
    }
    at->raw = std::move(raw);
  }
  std::string out;
  const std::function<void(const Node&)> print = [&](const Node& node) {
    if (!node.raw.empty()) {
      out += node.raw;
      return;
    }
    out += '{';
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      if (i > 0) {
        out += ',';
      }
      AppendJsonString(out, node.children[i].name);
      out += ':';
      print(node.children[i]);
    }
    out += '}';
  };
  print(top);
  return out;
}

}  // namespace

bool HasBounds(const DataType& type) { return type.IsNumeric() || type.IsDateTime() || type.Is(TypeKind::kString); }

bool IsPartition(const delta::Metadata& metadata, const std::string& name) {
  return std::any_of(metadata.partition_columns.begin(), metadata.partition_columns.end(),
                     [&](const std::string& p) { return EqualsIgnoreAsciiCase(p, name); });
}

std::vector<StatisticsLeaf> IndexedLeaves(const delta::Metadata& metadata, const types::Schema& schema) {
  std::int64_t most = 32;
  if (const std::string* text = delta::FindIn(metadata.configuration, "delta.dataSkippingNumIndexedCols")) {
    most = std::strtoll(text->c_str(), nullptr, 10);
  }
  std::optional<std::set<std::string>> chosen;
  if (const std::string* text = delta::FindIn(metadata.configuration, "delta.dataSkippingStatsColumns")) {
    chosen.emplace();
    for (const std::string& name : Split(*text, ',')) {
      std::string clean(TrimAscii(name));
      std::erase(clean, '`');
      chosen->insert(AsciiLower(clean));
    }
  }
  std::vector<StatisticsLeaf> leaves;
  std::int64_t seen = 0;
  const std::function<void(const DataType&, std::vector<std::string>, const std::string&, bool, bool)> visit =
      [&](const DataType& type, std::vector<std::string> path, const std::string& logical, bool top, bool in_chosen) {
        for (const StructField& field : type.fields()) {
          if (top && IsPartition(metadata, field.name)) {
            continue;
          }
          std::vector<std::string> inner = path;
          inner.push_back(delta::PhysicalName(field, metadata));
          const std::string name = AsciiLower(logical.empty() ? field.name : logical + "." + field.name);
          const bool is_chosen = in_chosen || (chosen && chosen->contains(name));
          if (field.type.Is(TypeKind::kStruct)) {
            visit(field.type, inner, name, false, is_chosen);
            continue;
          }
          ++seen;
          if (field.type.Is(TypeKind::kVoid)) {
            continue;
          }
          if (chosen ? is_chosen : (most < 0 || seen <= most)) {
            leaves.push_back({inner, field.type});
          }
        }
      };
  visit(schema, {}, "", true, false);
  return leaves;
}

std::string StatisticsText(const std::vector<StatisticsLeaf>& leaves, std::int64_t row_count,
                           const std::vector<LeafStatistics>& values, bool tight_bounds) {
  const auto bound = [&](std::size_t i, bool is_max) -> std::string {
    const Value& value = is_max ? values[i].max : values[i].min;
    return value.is_null() || !HasBounds(leaves[i].type) ? std::string() : BoundText(value, leaves[i].type, is_max);
  };
  std::string out = "{\"numRecords\":" + std::to_string(row_count);
  if (!leaves.empty()) {
    out += ",\"minValues\":" + NestedObject(leaves, [&](std::size_t i) { return bound(i, false); });
    out += ",\"maxValues\":" + NestedObject(leaves, [&](std::size_t i) { return bound(i, true); });
    out += ",\"nullCount\":" + NestedObject(leaves, [&](std::size_t i) {
             return values[i].null_count < 0 ? std::string() : std::to_string(values[i].null_count);
           });
  }
  if (tight_bounds) {
    out += ",\"tightBounds\":true";
  }
  return out + "}";
}

}  // namespace fleuve::tables
