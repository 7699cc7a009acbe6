#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/bytes.h"
#include "base/json.h"
#include "engine/carriers_internal.h"
#include "engine/functions/register_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/variant_builder_internal.h"
#include "engine/functions/variant_internal.h"
#include "types/time_zone.h"

namespace fleuve::engine {

using types::DataType;
using types::TypeKind;

namespace {

[[noreturn]] void ThrowMalformed() {
  ThrowRowError(Error(ErrorKind::kCorrupt, "MALFORMED_VARIANT",
                      "Variant binary is malformed. Please check the data source is valid.")
                    .Family(ErrorFamily::kRuntime));
}

std::string Base64(std::string_view bytes) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return k < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[k])) : 0U;
    };
    const std::uint32_t bits = (byte(i) << 16) | (byte(i + 1) << 8) | byte(i + 2);
    out.push_back(kLetters[bits >> 18]);
    out.push_back(kLetters[(bits >> 12) & 63]);
    out.push_back(i + 1 < bytes.size() ? kLetters[(bits >> 6) & 63] : '=');
    out.push_back(i + 2 < bytes.size() ? kLetters[bits & 63] : '=');
  }
  return out;
}

}  // namespace

/// Where the parts of an object or array lie.
struct VariantView::Layout {
  bool object = false;
  std::size_t count = 0;
  std::size_t id_size = 0;
  std::size_t offset_size = 0;
  std::size_t ids = 0;
  std::size_t offsets = 0;
  std::size_t data = 0;
};

std::uint64_t VariantView::Read(std::size_t at, std::size_t bytes) const {
  if (at + bytes > value_.size()) {
    ThrowMalformed();
  }
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    out |= static_cast<std::uint64_t>(static_cast<unsigned char>(value_[at + i])) << (8 * i);
  }
  return out;
}

namespace {

std::uint64_t ReadFrom(std::string_view text, std::size_t at, std::size_t bytes) {
  if (at + bytes > text.size()) {
    ThrowMalformed();
  }
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    out |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
  }
  return out;
}

std::int64_t Signed(std::uint64_t bits, std::size_t bytes) {
  const int shift = static_cast<int>(64 - 8 * bytes);
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

}  // namespace

VariantView::Layout VariantView::Container() const {
  const std::uint64_t first = Read(0, 1);
  const std::uint64_t header = first >> 2;
  Layout layout;
  layout.object = (first & 3) == kObjectBasic;
  layout.offset_size = (header & 3) + 1;
  layout.id_size = layout.object ? ((header >> 2) & 3) + 1 : 0;
  const bool large = layout.object ? ((header >> 4) & 1) != 0 : ((header >> 2) & 1) != 0;
  const std::size_t count_size = large ? 4 : 1;
  layout.count = Read(1, count_size);
  layout.ids = 1 + count_size;
  layout.offsets = layout.ids + layout.count * layout.id_size;
  layout.data = layout.offsets + (layout.count + 1) * layout.offset_size;
  if (layout.data > value_.size()) {
    ThrowMalformed();
  }
  return layout;
}

std::string_view VariantView::Dictionary(std::uint64_t id) const {
  const std::uint64_t header = ReadFrom(metadata_, 0, 1);
  const std::size_t size = ((header >> 6) & 3) + 1;
  const std::uint64_t count = ReadFrom(metadata_, 1, size);
  if (id >= count) {
    ThrowMalformed();
  }
  const std::size_t offsets = 1 + size;
  const std::size_t bytes = offsets + (count + 1) * size;
  const std::uint64_t begin = ReadFrom(metadata_, offsets + id * size, size);
  const std::uint64_t end = ReadFrom(metadata_, offsets + (id + 1) * size, size);
  if (end < begin || bytes + end > metadata_.size()) {
    ThrowMalformed();
  }
  return metadata_.substr(bytes + begin, end - begin);
}

VariantKind VariantView::kind() const {
  const std::uint64_t first = Read(0, 1);
  switch (first & 3) {
    case kShortString:
      return VariantKind::kString;
    case kObjectBasic:
      return VariantKind::kObject;
    case kArrayBasic:
      return VariantKind::kArray;
    default:
      break;
  }
  switch (first >> 2) {
    case kPrimitiveNull:
      return VariantKind::kNull;
    case kTrue:
    case kFalse:
      return VariantKind::kBoolean;
    case kInt8:
    case kInt16:
    case kInt32:
    case kInt64:
      return VariantKind::kLong;
    case kPrimitiveDouble:
      return VariantKind::kDouble;
    case kPrimitiveFloat:
      return VariantKind::kFloat;
    case kDecimal4:
    case kDecimal8:
    case kDecimal16:
      return VariantKind::kDecimal;
    case kPrimitiveDate:
      return VariantKind::kDate;
    case kPrimitiveTimestamp:
      return VariantKind::kTimestamp;
    case kPrimitiveTimestampNtz:
      return VariantKind::kTimestampNtz;
    case kPrimitiveBinary:
      return VariantKind::kBinary;
    case kLongString:
      return VariantKind::kString;
    default:
      ThrowRowError(
          Error(ErrorKind::kUnsupported, "UNKNOWN_PRIMITIVE_TYPE_IN_VARIANT",
                "Unknown primitive type with id " + std::to_string(first >> 2) + " was found in a variant value."));
  }
}

bool VariantView::boolean() const { return (Read(0, 1) >> 2) == kTrue; }

std::int64_t VariantView::integer() const {
  switch (Read(0, 1) >> 2) {
    case kInt8:
      return Signed(Read(1, 1), 1);
    case kInt16:
      return Signed(Read(1, 2), 2);
    case kInt32:
    case kPrimitiveDate:
      return Signed(Read(1, 4), 4);
    default:
      return Signed(Read(1, 8), 8);
  }
}

double VariantView::real() const {
  if ((Read(0, 1) >> 2) == kPrimitiveFloat) {
    const auto bits = static_cast<std::uint32_t>(Read(1, 4));
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  const std::uint64_t bits = Read(1, 8);
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::pair<types::Int128, int> VariantView::decimal() const {
  const std::uint64_t type = Read(0, 1) >> 2;
  int scale = static_cast<int>(Read(1, 1));
  types::Int128 value;
  if (type == kDecimal4) {
    value = Signed(Read(2, 4), 4);
  } else if (type == kDecimal8) {
    value = Signed(Read(2, 8), 8);
  } else {
    value = static_cast<types::Int128>((static_cast<unsigned __int128>(Read(10, 8)) << 64) | Read(2, 8));
  }
  while (scale > 0 && value % 10 == 0) {
    value /= 10;
    --scale;
  }
  return {value, scale};
}

std::string_view VariantView::text() const {
  const std::uint64_t first = Read(0, 1);
  if ((first & 3) == kShortString) {
    const std::size_t length = first >> 2;
    if (1 + length > value_.size()) {
      ThrowMalformed();
    }
    return value_.substr(1, length);
  }
  const std::size_t length = Read(1, 4);
  if (5 + length > value_.size()) {
    ThrowMalformed();
  }
  return value_.substr(5, length);
}

std::size_t VariantView::size() const { return Container().count; }

std::string_view VariantView::name(std::size_t i) const {
  const Layout layout = Container();
  return Dictionary(Read(layout.ids + i * layout.id_size, layout.id_size));
}

VariantView VariantView::child(std::size_t i) const {
  const Layout layout = Container();
  const std::uint64_t offset = Read(layout.offsets + i * layout.offset_size, layout.offset_size);
  if (layout.data + offset >= value_.size()) {
    ThrowMalformed();
  }
  return VariantView(value_.substr(layout.data + offset), metadata_);
}

std::optional<VariantView> VariantView::Field(std::string_view wanted) const {
  const Layout layout = Container();
  for (std::size_t i = 0; i < layout.count; ++i) {
    if (name(i) == wanted) {
      return child(i);
    }
  }
  return std::nullopt;
}

std::string_view VariantView::bytes() const {
  const std::uint64_t first = Read(0, 1);
  std::size_t length = 0;
  switch (first & 3) {
    case kShortString:
      length = 1 + (first >> 2);
      break;
    case kObjectBasic:
    case kArrayBasic: {
      const Layout layout = Container();
      length = layout.data + Read(layout.offsets + layout.count * layout.offset_size, layout.offset_size);
      break;
    }
    default:
      switch (first >> 2) {
        case kPrimitiveNull:
        case kTrue:
        case kFalse:
          length = 1;
          break;
        case kInt8:
          length = 2;
          break;
        case kInt16:
          length = 3;
          break;
        case kInt32:
        case kPrimitiveDate:
        case kPrimitiveFloat:
          length = 5;
          break;
        case kDecimal4:
          length = 6;
          break;
        case kDecimal8:
          length = 10;
          break;
        case kDecimal16:
          length = 18;
          break;
        case kPrimitiveBinary:
        case kLongString:
          length = 5 + Read(1, 4);
          break;
        default:
          length = 9;
      }
  }
  if (length > value_.size()) {
    ThrowMalformed();
  }
  return value_.substr(0, length);
}

void VariantView::AppendJson(std::string& out, const types::TimeZone& zone) const {
  switch (kind()) {
    case VariantKind::kNull:
      out += "null";
      return;
    case VariantKind::kBoolean:
      out += boolean() ? "true" : "false";
      return;
    case VariantKind::kLong:
      out += std::to_string(integer());
      return;
    case VariantKind::kDouble:
    case VariantKind::kFloat: {
      const double value = real();
      const std::string text =
          kind() == VariantKind::kFloat ? JavaFloatToString(static_cast<float>(value)) : JavaDoubleToString(value);
      out += std::isfinite(value) ? text : "\"" + text + "\"";
      return;
    }
    case VariantKind::kDecimal: {
      const auto [value, scale] = decimal();
      out += types::DecimalToString(value, scale);
      return;
    }
    case VariantKind::kString:
      AppendJsonString(out, text());
      return;
    case VariantKind::kBinary:
      out += "\"" + Base64(text()) + "\"";
      return;
    case VariantKind::kDate:
      out += "\"" + types::DateToString(integer()) + "\"";
      return;
    case VariantKind::kTimestamp: {
      const std::int64_t offset = zone.OffsetSecondsAtUtc(integer());
      char text[16];
      std::snprintf(text, sizeof(text), "%c%02d:%02d", offset < 0 ? '-' : '+',
                    static_cast<int>(std::abs(offset) / 3600), static_cast<int>(std::abs(offset) / 60 % 60));
      out += "\"" + types::TimestampNtzToString(zone.UtcToLocal(integer())) + text + "\"";
      return;
    }
    case VariantKind::kTimestampNtz:
      out += "\"" + types::TimestampNtzToString(integer()) + "\"";
      return;
    case VariantKind::kObject:
      out.push_back('{');
      for (std::size_t i = 0, count = size(); i < count; ++i) {
        if (i > 0) {
          out.push_back(',');
        }
        AppendJsonString(out, name(i));
        out.push_back(':');
        child(i).AppendJson(out, zone);
      }
      out.push_back('}');
      return;
    case VariantKind::kArray:
      out.push_back('[');
      for (std::size_t i = 0, count = size(); i < count; ++i) {
        if (i > 0) {
          out.push_back(',');
        }
        child(i).AppendJson(out, zone);
      }
      out.push_back(']');
      return;
  }
}

namespace {

using Shape = VariantShape;

Shape ShapeOf(const VariantView& view);

Shape Merge(const Shape& a, const Shape& b) {
  const auto is_void = [](const Shape& s) { return s.kind == Shape::Kind::kPlain && s.type.Is(TypeKind::kVoid); };
  if (is_void(a)) {
    return b;
  }
  if (is_void(b)) {
    return a;
  }
  if (a.kind == Shape::Kind::kPlain && b.kind == Shape::Kind::kPlain) {
    if (a.type == b.type) {
      return a;
    }
    const auto decimal = [](const DataType& t) {
      return t.Is(TypeKind::kLong)      ? std::optional<DataType>(DataType::Decimal(20, 0))
             : t.Is(TypeKind::kDecimal) ? std::optional<DataType>(t)
                                        : std::nullopt;
    };
    const auto x = decimal(a.type);
    const auto y = decimal(b.type);
    Shape out;
    if (x && y) {
      const int scale = std::max(x->scale(), y->scale());
      const int range = std::max(x->precision() - x->scale(), y->precision() - y->scale());
      out.type = range + scale > 38 ? DataType::Double() : DataType::Decimal(range + scale, scale);
      return out;
    }
    if (a.type.IsNumeric() && b.type.IsNumeric()) {
      out.type = DataType::Double();
      return out;
    }
  }
  if (a.kind == Shape::Kind::kArray && b.kind == Shape::Kind::kArray) {
    Shape out = a;
    out.element[0] = Merge(a.element[0], b.element[0]);
    return out;
  }
  if (a.kind == Shape::Kind::kObject && b.kind == Shape::Kind::kObject) {
    Shape out = a;
    for (const Shape::Field& field : b.fields) {
      auto found =
          std::find_if(out.fields.begin(), out.fields.end(), [&](const auto& mine) { return mine.name == field.name; });
      if (found == out.fields.end()) {
        out.fields.push_back(field);
      } else {
        found->shape = Merge(found->shape, field.shape);
      }
    }
    std::sort(out.fields.begin(), out.fields.end(), [](const auto& x, const auto& y) { return x.name < y.name; });
    return out;
  }
  Shape out;
  out.kind = Shape::Kind::kVariant;
  return out;
}

Shape ShapeOf(const VariantView& view) {
  Shape out;
  switch (view.kind()) {
    case VariantKind::kNull:
      break;
    case VariantKind::kBoolean:
      out.type = DataType::Boolean();
      break;
    case VariantKind::kLong:
      out.type = DataType::Long();
      break;
    case VariantKind::kDouble:
      out.type = DataType::Double();
      break;
    case VariantKind::kFloat:
      out.type = DataType::Float();
      break;
    case VariantKind::kDecimal: {
      const auto [value, scale] = view.decimal();
      out.type = DataType::Decimal(std::max(DecimalDigits(value), scale), scale);
      break;
    }
    case VariantKind::kDate:
      out.type = DataType::Date();
      break;
    case VariantKind::kTimestamp:
      out.type = DataType::Timestamp();
      break;
    case VariantKind::kTimestampNtz:
      out.type = DataType::TimestampNtz();
      break;
    case VariantKind::kString:
      out.type = DataType::String();
      break;
    case VariantKind::kBinary:
      out.type = DataType::Binary();
      break;
    case VariantKind::kObject:
      out.kind = Shape::Kind::kObject;
      for (std::size_t i = 0, count = view.size(); i < count; ++i) {
        out.fields.push_back({std::string(view.name(i)), ShapeOf(view.child(i))});
      }
      break;
    case VariantKind::kArray: {
      out.kind = Shape::Kind::kArray;
      out.element.emplace_back();
      for (std::size_t i = 0, count = view.size(); i < count; ++i) {
        out.element[0] = Merge(out.element[0], ShapeOf(view.child(i)));
      }
      break;
    }
  }
  return out;
}

std::string TextOf(const Shape& shape) {
  switch (shape.kind) {
    case Shape::Kind::kVariant:
      return "VARIANT";
    case Shape::Kind::kArray:
      return "ARRAY<" + TextOf(shape.element[0]) + ">";
    case Shape::Kind::kObject: {
      std::string out = "OBJECT<";
      for (const auto& [name, field] : shape.fields) {
        out += (out.back() == '<' ? "" : ", ") + types::QuoteIfNeeded(name) + ": " + TextOf(field);
      }
      return out + ">";
    }
    default:
      return shape.type.Sql();
  }
}

}  // namespace

std::string VariantView::Schema() const { return TextOf(ShapeOf(*this)); }

VariantShape VariantView::ShapeOfValue() const { return ShapeOf(*this); }

VariantShape MergeShapes(const VariantShape& a, const VariantShape& b) { return Merge(a, b); }

std::string ShapeText(const VariantShape& shape) { return TextOf(shape); }

std::optional<VariantView> FollowVariantPath(const VariantView& root, std::string_view path) {
  const auto invalid = [&]() {
    ThrowRowError(
        Error(ErrorKind::kInvalidArgument, "INVALID_VARIANT_GET_PATH",
              "The path `" + std::string(path) +
                  "` is not a valid variant extraction path in `variant_get`. A valid path should start with `$` "
                  "and is followed by zero or more segments like `[123]`, `.name`, `['name']`, or `[\"name\"]`.")
            .With("path", std::string(path))
            .With("functionName", "`variant_get`")
            .Family(ErrorFamily::kRuntime));
  };
  if (path.empty() || path[0] != '$') {
    invalid();
  }
  std::optional<VariantView> at = root;
  std::size_t i = 1;
  while (i < path.size()) {
    if (path[i] == '.') {
      const std::size_t end = std::min(path.find_first_of(".[", i + 1), path.size());
      if (end == i + 1) {
        invalid();
      }
      at = at && at->kind() == VariantKind::kObject ? at->Field(path.substr(i + 1, end - i - 1)) : std::nullopt;
      i = end;
      continue;
    }
    if (path[i] != '[' || i + 1 >= path.size()) {
      invalid();
    }
    ++i;
    if (path[i] == '\'' || path[i] == '"') {
      const std::size_t end = path.find(path[i], i + 1);
      if (end == std::string_view::npos || end + 1 >= path.size() || path[end + 1] != ']') {
        invalid();
      }
      at = at && at->kind() == VariantKind::kObject ? at->Field(path.substr(i + 1, end - i - 1)) : std::nullopt;
      i = end + 2;
      continue;
    }
    std::size_t index = 0;
    const auto parsed = std::from_chars(path.data() + i, path.data() + path.size(), index);
    if (parsed.ec != std::errc() || parsed.ptr == path.data() + path.size() || *parsed.ptr != ']') {
      invalid();
    }
    at = at && at->kind() == VariantKind::kArray && index < at->size() ? std::optional<VariantView>(at->child(index))
                                                                       : std::nullopt;
    i = static_cast<std::size_t>(parsed.ptr - path.data()) + 1;
  }
  return at;
}

}  // namespace fleuve::engine
