#include <arrow/util/bit_util.h>

#include <limits>

#include "columnar/arrow_types_internal.h"

namespace fleuve::columnar {

namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using BufferPtr = std::shared_ptr<arrow::Buffer>;

Result<BufferPtr> NewBuffer(std::int64_t bytes) {
  auto buffer = arrow::AllocateBuffer(bytes);
  if (!buffer.ok()) {
    return FromArrowStatus(buffer.status());
  }
  return BufferPtr(std::move(*buffer));
}

/// A validity bitmap that begins at bit 0, or null where nothing is NULL.
Result<BufferPtr> ValidityFromZero(const arrow::Array& array) {
  if (array.null_count() == 0 || array.null_bitmap() == nullptr) {
    return BufferPtr();
  }
  FLEUVE_ASSIGN(BufferPtr bits, NewBuffer(arrow::bit_util::BytesForBits(array.length())));
  auto* out = bits->mutable_data();
  std::fill(out, out + bits->size(), std::uint8_t{0});
  for (std::int64_t i = 0; i < array.length(); ++i) {
    if (array.IsValid(i)) {
      arrow::bit_util::SetBit(out, i);
    }
  }
  return bits;
}

Error TooManyBytes() {
  return Error(ErrorKind::kResourceExhausted, "FLEUVE_BATCH_TOO_LARGE",
               "One Arrow batch holds more than 2 GiB of text or elements in one column; send smaller batches.");
}

/// Text or bytes of any layout, copied into 32-bit offsets.
template <typename ArrayType>
Result<ArrayPtr> NarrowBinary(const ArrayType& array, const std::shared_ptr<arrow::DataType>& type) {
  const std::int64_t length = array.length();
  FLEUVE_ASSIGN(BufferPtr offsets, NewBuffer((length + 1) * 4));
  auto* out = reinterpret_cast<std::int32_t*>(offsets->mutable_data());
  std::int64_t total = 0;
  out[0] = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    if (array.IsValid(i)) {
      total += static_cast<std::int64_t>(array.GetView(i).size());
    }
    if (total > std::numeric_limits<std::int32_t>::max()) {
      return TooManyBytes();
    }
    out[i + 1] = static_cast<std::int32_t>(total);
  }
  FLEUVE_ASSIGN(BufferPtr bytes, NewBuffer(total));
  auto* text = bytes->mutable_data();
  for (std::int64_t i = 0; i < length; ++i) {
    if (array.IsValid(i)) {
      const std::string_view view = array.GetView(i);
      std::copy(view.begin(), view.end(), text + out[i]);
    }
  }
  FLEUVE_ASSIGN(BufferPtr validity, ValidityFromZero(array));
  return arrow::MakeArray(arrow::ArrayData::Make(type, length, {validity, offsets, bytes}));
}

/// 64-bit numbers divided (towards minus infinity) or multiplied into microseconds.
Result<ArrayPtr> RescaleLongs(const arrow::Array& array, std::int64_t multiplier, std::int64_t divisor,
                              const std::shared_ptr<arrow::DataType>& type) {
  const auto* values = array.data()->GetValues<std::int64_t>(1);
  FLEUVE_ASSIGN(BufferPtr buffer, NewBuffer(array.length() * 8));
  auto* out = reinterpret_cast<std::int64_t*>(buffer->mutable_data());
  for (std::int64_t i = 0; i < array.length(); ++i) {
    std::int64_t value = array.IsValid(i) ? values[i] : 0;
    if (__builtin_mul_overflow(value, multiplier, &value)) {
      return Error(ErrorKind::kInvalidArgument, "DATETIME_OVERFLOW",
                   "Datetime operation overflow: a time of an Arrow batch does not fit into microseconds.");
    }
    std::int64_t quotient = value / divisor;
    if (value % divisor != 0 && value < 0) {
      --quotient;
    }
    out[i] = quotient;
  }
  FLEUVE_ASSIGN(BufferPtr validity, ValidityFromZero(array));
  return arrow::MakeArray(arrow::ArrayData::Make(type, array.length(), {validity, buffer}));
}

Result<ArrayPtr> ToMicros(const arrow::Array& array, arrow::TimeUnit::type unit,
                          const std::shared_ptr<arrow::DataType>& type) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return RescaleLongs(array, 1000000, 1, type);
    case arrow::TimeUnit::MILLI:
      return RescaleLongs(array, 1000, 1, type);
    case arrow::TimeUnit::NANO:
      return RescaleLongs(array, 1, 1000, type);
    case arrow::TimeUnit::MICRO:
      break;
  }
  return RescaleLongs(array, 1, 1, type);
}

Result<ArrayPtr> DecodeDictionary(const arrow::DictionaryArray& array) {
  FLEUVE_ASSIGN(ArrayPtr values, ToCanonical(array.dictionary()));
  std::unique_ptr<arrow::ArrayBuilder> builder;
  FLEUVE_ARROW_TRY(arrow::MakeBuilder(arrow::default_memory_pool(), values->type(), &builder));
  FLEUVE_ARROW_TRY(builder->Reserve(array.length()));
  const arrow::ArraySpan span(*values->data());
  for (std::int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) {
      FLEUVE_ARROW_TRY(builder->AppendNull());
      continue;
    }
    const std::int64_t index = array.GetValueIndex(i);
    if (index < 0 || index >= values->length()) {
      return FromArrowStatus(arrow::Status::Invalid("dictionary index out of range"), true);
    }
    FLEUVE_ARROW_TRY(builder->AppendArraySlice(span, index, 1));
  }
  auto out = builder->Finish();
  if (!out.ok()) {
    return FromArrowStatus(out.status());
  }
  return *out;
}

/// A list of any layout with 32-bit offsets from 0 and canonical elements.
template <typename ArrayType>
Result<ArrayPtr> CanonicalList(const ArrayType& array) {
  const std::int64_t length = array.length();
  FLEUVE_ASSIGN(BufferPtr offsets, NewBuffer((length + 1) * 4));
  auto* out = reinterpret_cast<std::int32_t*>(offsets->mutable_data());
  const std::int64_t first = length == 0 ? 0 : array.value_offset(0);
  const std::int64_t last = length == 0 ? 0 : array.value_offset(length - 1) + array.value_length(length - 1);
  if (last - first > std::numeric_limits<std::int32_t>::max()) {
    return TooManyBytes();
  }
  out[0] = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    out[i + 1] = static_cast<std::int32_t>(array.value_offset(i) + array.value_length(i) - first);
  }
  FLEUVE_ASSIGN(ArrayPtr elements, ToCanonical(array.values()->Slice(first, last - first)));
  FLEUVE_ASSIGN(BufferPtr validity, ValidityFromZero(array));
  const auto& field = array.type()->field(0);
  auto data = arrow::ArrayData::Make(arrow::list(field->WithType(elements->type())), length, {validity, offsets});
  data->child_data.push_back(elements->data());
  return arrow::MakeArray(data);
}

Result<ArrayPtr> CanonicalMap(const arrow::MapArray& array) {
  const std::int64_t length = array.length();
  FLEUVE_ASSIGN(BufferPtr offsets, NewBuffer((length + 1) * 4));
  auto* out = reinterpret_cast<std::int32_t*>(offsets->mutable_data());
  const std::int32_t first = array.value_offset(0);
  for (std::int64_t i = 0; i <= length; ++i) {
    out[i] = array.value_offset(i) - first;
  }
  FLEUVE_ASSIGN(ArrayPtr keys, ToCanonical(array.keys()->Slice(first, out[length])));
  FLEUVE_ASSIGN(ArrayPtr items, ToCanonical(array.items()->Slice(first, out[length])));
  FLEUVE_ASSIGN(BufferPtr validity, ValidityFromZero(array));
  const auto& map_type = static_cast<const arrow::MapType&>(*array.type());
  auto type = std::make_shared<arrow::MapType>(arrow::field("key", keys->type(), false),
                                               arrow::field("value", items->type(), map_type.item_field()->nullable()));
  auto entries = arrow::ArrayData::Make(type->value_type(), out[length], {nullptr}, 0);
  entries->child_data = {keys->data(), items->data()};
  auto data = arrow::ArrayData::Make(type, length, {validity, offsets});
  data->child_data.push_back(entries);
  return arrow::MakeArray(data);
}

Result<ArrayPtr> CanonicalStruct(const arrow::StructArray& array) {
  arrow::FieldVector fields;
  std::vector<std::shared_ptr<arrow::ArrayData>> children;
  for (int i = 0; i < array.num_fields(); ++i) {
    FLEUVE_ASSIGN(ArrayPtr child, ToCanonical(array.field(i)));  // field() applies the offset
    fields.push_back(array.type()->field(i)->WithType(child->type()));
    children.push_back(child->data());
  }
  FLEUVE_ASSIGN(BufferPtr validity, ValidityFromZero(array));
  auto data = arrow::ArrayData::Make(arrow::struct_(std::move(fields)), array.length(), {validity});
  data->child_data = std::move(children);
  return arrow::MakeArray(data);
}

}  // namespace

Result<ArrayPtr> ToCanonical(const ArrayPtr& array) {
  const auto& type = array->type();
  switch (type->id()) {
    case arrow::Type::DICTIONARY:
      return DecodeDictionary(static_cast<const arrow::DictionaryArray&>(*array));
    case arrow::Type::LARGE_STRING:
      return NarrowBinary(static_cast<const arrow::LargeStringArray&>(*array), arrow::utf8());
    case arrow::Type::LARGE_BINARY:
      return NarrowBinary(static_cast<const arrow::LargeBinaryArray&>(*array), arrow::binary());
    case arrow::Type::STRING_VIEW:
      return NarrowBinary(static_cast<const arrow::StringViewArray&>(*array), arrow::utf8());
    case arrow::Type::BINARY_VIEW:
      return NarrowBinary(static_cast<const arrow::BinaryViewArray&>(*array), arrow::binary());
    case arrow::Type::FIXED_SIZE_BINARY:
      return NarrowBinary(static_cast<const arrow::FixedSizeBinaryArray&>(*array), arrow::binary());
    case arrow::Type::DATE64: {
      const auto* values = array->data()->GetValues<std::int64_t>(1);
      FLEUVE_ASSIGN(BufferPtr buffer, NewBuffer(array->length() * 4));
      auto* out = reinterpret_cast<std::int32_t*>(buffer->mutable_data());
      for (std::int64_t i = 0; i < array->length(); ++i) {
        out[i] = array->IsValid(i) ? static_cast<std::int32_t>(values[i] / 86400000) : 0;
      }
      FLEUVE_ASSIGN(BufferPtr validity, ValidityFromZero(*array));
      return arrow::MakeArray(arrow::ArrayData::Make(arrow::date32(), array->length(), {validity, buffer}));
    }
    case arrow::Type::TIMESTAMP: {
      const auto& timestamp = static_cast<const arrow::TimestampType&>(*type);
      if (timestamp.unit() == arrow::TimeUnit::MICRO) {
        return array;
      }
      return ToMicros(*array, timestamp.unit(), arrow::timestamp(arrow::TimeUnit::MICRO, timestamp.timezone()));
    }
    case arrow::Type::DURATION: {
      const auto unit = static_cast<const arrow::DurationType&>(*type).unit();
      if (unit == arrow::TimeUnit::MICRO) {
        return array;
      }
      return ToMicros(*array, unit, arrow::duration(arrow::TimeUnit::MICRO));
    }
    case arrow::Type::LIST:
      return CanonicalList(static_cast<const arrow::ListArray&>(*array));
    case arrow::Type::LARGE_LIST:
      return CanonicalList(static_cast<const arrow::LargeListArray&>(*array));
    case arrow::Type::FIXED_SIZE_LIST:
      return CanonicalList(static_cast<const arrow::FixedSizeListArray&>(*array));
    case arrow::Type::MAP:
      return CanonicalMap(static_cast<const arrow::MapArray&>(*array));
    case arrow::Type::STRUCT:
      return CanonicalStruct(static_cast<const arrow::StructArray&>(*array));
    default:
      return array;
  }
}

}  // namespace fleuve::columnar
