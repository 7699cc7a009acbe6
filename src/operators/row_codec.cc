#include <cmath>
#include <cstring>
#include <limits>

#include "columnar/arrays.h"
#include "operators/row_codec_internal.h"
#include "state/byte_codec.h"
#include "state/store.h"

namespace fleuve::operators {

namespace {

using types::DataType;
using types::TypeKind;

/// Bytes of a value of fixed width; 0: its width varies.
std::size_t WidthOf(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kBoolean:
    case TypeKind::kByte:
      return 1;
    case TypeKind::kShort:
      return 2;
    case TypeKind::kInt:
    case TypeKind::kFloat:
    case TypeKind::kDate:
    case TypeKind::kYearMonthInterval:
      return 4;
    case TypeKind::kLong:
    case TypeKind::kDouble:
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
    case TypeKind::kDayTimeInterval:
      return 8;
    case TypeKind::kDecimal:
    case TypeKind::kCalendarInterval:
      return 16;
    default:
      return 0;
  }
}

/// The parts of a nested type, in the order of the Arrow children.
std::vector<DataType> PartsOf(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kStruct: {
      std::vector<DataType> parts;
      for (const auto& field : type.fields()) {
        parts.push_back(field.type);
      }
      return parts;
    }
    case TypeKind::kVariant:
      return {DataType::Binary(), DataType::Binary()};
    case TypeKind::kArray:
      return {type.element()};
    case TypeKind::kMap:
      return {DataType::Struct({{"key", type.key(), false, Json()}, {"value", type.value(), true, Json()}})};
    default:
      return {};
  }
}

bool IsStruct(const DataType& type) { return type.Is(TypeKind::kStruct) || type.Is(TypeKind::kVariant); }
bool IsList(const DataType& type) { return type.Is(TypeKind::kArray) || type.Is(TypeKind::kMap); }

bool IsNull(const ArrowArray& array, std::int64_t at) {
  if (array.null_count == 0 || array.n_buffers == 0 || array.buffers[0] == nullptr) {
    return false;
  }
  const auto* bits = static_cast<const std::uint8_t*>(array.buffers[0]);
  return (bits[at >> 3] >> (at & 7) & 1) == 0;
}

template <typename T>
void AppendReal(std::string& out, T value, bool as_key) {
  if (as_key) {
    if (value == 0) {
      value = 0;
    } else if (std::isnan(value)) {
      value = std::numeric_limits<T>::quiet_NaN();
    }
  }
  state::AppendRaw(out, value);
}

void Write(const ArrowArray& array, const DataType& type, std::int64_t at, bool as_key, std::string& out);

/// A bit per value that is NULL, then the values that are not. `at` counts from the arrays' own offsets.
void WriteAll(const std::vector<const ArrowArray*>& arrays, const std::vector<const DataType*>& types,
              const std::vector<std::int64_t>& at, bool as_key, std::string& out) {
  const std::size_t bits = out.size();
  out.append((arrays.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (types[i]->Is(TypeKind::kVoid) || IsNull(*arrays[i], at[i])) {
      out[bits + i / 8] = static_cast<char>(out[bits + i / 8] | 1 << (i % 8));
    } else {
      Write(*arrays[i], *types[i], at[i], as_key, out);
    }
  }
}

/// One value that is not NULL. `at` counts from the array's buffers (its offset is in it).
void Write(const ArrowArray& array, const DataType& type, std::int64_t at, bool as_key, std::string& out) {
  if (type.Is(TypeKind::kBoolean)) {
    const auto* bits = static_cast<const std::uint8_t*>(array.buffers[1]);
    out.push_back(static_cast<char>(bits[at >> 3] >> (at & 7) & 1));
    return;
  }
  if (type.Is(TypeKind::kFloat)) {
    AppendReal(out, static_cast<const float*>(array.buffers[1])[at], as_key);
    return;
  }
  if (type.Is(TypeKind::kDouble)) {
    AppendReal(out, static_cast<const double*>(array.buffers[1])[at], as_key);
    return;
  }
  if (const std::size_t width = WidthOf(type); width > 0) {
    out.append(static_cast<const char*>(array.buffers[1]) + static_cast<std::size_t>(at) * width, width);
    return;
  }
  if (IsStruct(type)) {
    const std::vector<DataType> parts = PartsOf(type);
    std::vector<const ArrowArray*> arrays;
    std::vector<const DataType*> types;
    std::vector<std::int64_t> places;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      arrays.push_back(array.children[i]);
      types.push_back(&parts[i]);
      places.push_back(at + array.children[i]->offset);
    }
    WriteAll(arrays, types, places, as_key, out);
    return;
  }
  const auto* offsets = static_cast<const std::int32_t*>(array.buffers[1]);
  const std::int32_t begin = offsets[at];
  const std::int32_t end = offsets[at + 1];
  state::AppendLength(out, static_cast<std::size_t>(end - begin));
  if (!IsList(type)) {
    out.append(static_cast<const char*>(array.buffers[2]) + begin, static_cast<std::size_t>(end - begin));
    return;
  }
  const DataType element = PartsOf(type)[0];
  const ArrowArray* child = array.children[0];
  const auto count = static_cast<std::size_t>(end - begin);
  const std::vector<const ArrowArray*> arrays(count, child);
  const std::vector<const DataType*> types(count, &element);
  std::vector<std::int64_t> places;
  for (std::int32_t i = begin; i < end; ++i) {
    places.push_back(i + child->offset);
  }
  WriteAll(arrays, types, places, as_key, out);
}

}  // namespace

RowEncoder::RowEncoder(const types::Schema& schema, std::vector<std::size_t> columns, bool as_key)
    : columns_(std::move(columns)), as_key_(as_key) {
  for (std::size_t column : columns_) {
    types_.push_back(schema.fields()[column].type);
  }
}

void RowEncoder::EncodeRow(const columnar::RecordBatch& batch, std::int64_t row, std::string* out) const {
  const ArrowArray& root = *batch.array->get();
  const std::size_t bits = out->size();
  out->append((columns_.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const ArrowArray& array = *root.children[columns_[i]];
    const std::int64_t at = root.offset + row + array.offset;
    if (types_[i].Is(TypeKind::kVoid) || IsNull(array, at)) {
      (*out)[bits + i / 8] = static_cast<char>((*out)[bits + i / 8] | 1 << (i % 8));
    } else {
      Write(array, types_[i], at, as_key_, *out);
    }
  }
}

void RowEncoder::Encode(const columnar::RecordBatch& batch, const std::vector<std::int64_t>* times,
                        state::ByteRows* rows) const {
  const std::int64_t count = batch.row_count();
  for (std::int64_t row = 0; row < count; ++row) {
    if (times != nullptr) {
      state::AppendTime(rows->bytes(), (*times)[static_cast<std::size_t>(row)]);
    }
    EncodeRow(batch, row, &rows->bytes());
    rows->EndRow();
  }
}

// ---- columns of rows ----

namespace {

/// One column under construction, its parts included.
struct Column {
  explicit Column(DataType of) : type(std::move(of)) {
    for (DataType& part : PartsOf(type)) {
      parts.emplace_back(std::move(part));
    }
    offsets.push_back(0);
  }

  DataType type;
  std::int64_t length = 0;
  std::int64_t nulls = 0;
  std::string validity;
  std::string data;
  std::vector<std::int32_t> offsets;
  std::vector<Column> parts;

  void AppendBit(std::string& bits, bool value) const {
    if (length % 8 == 0) {
      bits.push_back('\0');
    }
    if (value) {
      bits.back() = static_cast<char>(bits.back() | 1 << (length % 8));
    }
  }

  void AppendNull() {
    AppendBit(validity, false);
    ++nulls;
    if (type.Is(TypeKind::kBoolean)) {
      AppendBit(data, false);
    } else if (const std::size_t width = WidthOf(type); width > 0) {
      data.append(width, '\0');
    } else if (IsStruct(type)) {
      for (Column& part : parts) {
        part.AppendNull();
      }
    } else if (!type.Is(TypeKind::kVoid)) {
      offsets.push_back(offsets.back());
    }
    ++length;
  }

  /// Takes one value that is not NULL from the front of `bytes`; false where it ends first.
  bool Take(std::string_view& bytes);
};

/// Takes `count` values, value i into column `column(i)`.
template <typename ColumnOf>
bool TakeAll(std::string_view& bytes, std::size_t count, ColumnOf column) {
  const std::size_t size = (count + 7) / 8;
  if (bytes.size() < size) {
    return false;
  }
  const std::string_view bits = bytes.substr(0, size);
  bytes.remove_prefix(size);
  for (std::size_t i = 0; i < count; ++i) {
    if ((static_cast<unsigned char>(bits[i / 8]) >> (i % 8) & 1) != 0) {
      column(i).AppendNull();
    } else if (!column(i).Take(bytes)) {
      return false;
    }
  }
  return true;
}

bool Column::Take(std::string_view& bytes) {
  AppendBit(validity, true);
  if (const std::size_t width = WidthOf(type); width > 0) {
    if (bytes.size() < width) {
      return false;
    }
    if (type.Is(TypeKind::kBoolean)) {
      AppendBit(data, bytes[0] != 0);
    } else {
      data.append(bytes.substr(0, width));
    }
    bytes.remove_prefix(width);
  } else if (IsStruct(type)) {
    if (!TakeAll(bytes, parts.size(), [this](std::size_t i) -> Column& { return parts[i]; })) {
      return false;
    }
  } else if (!type.Is(TypeKind::kVoid)) {
    std::size_t count = 0;
    if (!state::TakeLength(bytes, &count)) {
      return false;
    }
    if (IsList(type)) {
      if (!TakeAll(bytes, count, [this](std::size_t) -> Column& { return parts[0]; })) {
        return false;
      }
    } else {
      if (bytes.size() < count) {
        return false;
      }
      data.append(bytes.substr(0, count));
      bytes.remove_prefix(count);
    }
    if (count > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() - offsets.back())) {
      return false;  // more than one array can hold; `BatchedRows` stays far below
    }
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(count));
  }
  ++length;
  return true;
}

ArrowArray FinishColumn(Column&& finished) {
  const auto column = std::make_shared<Column>(std::move(finished));
  const DataType& type = column->type;
  std::vector<ArrowArray> parts;
  for (Column& part : column->parts) {
    parts.push_back(FinishColumn(std::move(part)));
  }
  const void* validity = column->nulls > 0 ? column->validity.data() : nullptr;
  std::vector<const void*> buffers;
  if (type.Is(TypeKind::kVoid)) {
    // No buffers.
  } else if (WidthOf(type) > 0) {
    buffers = {validity, column->data.data()};
  } else if (IsStruct(type)) {
    buffers = {validity};
  } else if (IsList(type)) {
    buffers = {validity, column->offsets.data()};
  } else {
    buffers = {validity, column->offsets.data(), column->data.data()};
  }
  return columnar::MakeArray(column->length, column->nulls, std::move(buffers), std::move(parts), column);
}

}  // namespace

struct RowDecoder::Columns {
  std::shared_ptr<const types::Schema> schema;
  std::vector<std::size_t> fields_per_part;
  std::vector<Column> columns;
  std::int64_t rows = 0;
  std::size_t bytes = 0;

  void Begin() {
    columns.clear();
    for (const auto& field : schema->fields()) {
      columns.emplace_back(field.type);
    }
    rows = 0;
    bytes = 0;
  }
};

RowDecoder::RowDecoder(std::shared_ptr<const types::Schema> schema, std::vector<std::size_t> fields_per_part)
    : columns_(std::make_unique<Columns>()) {
  columns_->schema = std::move(schema);
  columns_->fields_per_part = std::move(fields_per_part);
  columns_->Begin();
}

RowDecoder::~RowDecoder() = default;
RowDecoder::RowDecoder(RowDecoder&&) noexcept = default;

Result<void> RowDecoder::Add(std::initializer_list<std::string_view> parts) {
  std::size_t first = 0;
  std::size_t part = 0;
  for (std::string_view bytes : parts) {
    const std::size_t count = columns_->fields_per_part[part++];
    columns_->bytes += bytes.size();
    if (bytes.data() == nullptr) {
      for (std::size_t i = 0; i < count; ++i) {
        columns_->columns[first + i].AppendNull();
      }
    } else if (!TakeAll(bytes, count, [&](std::size_t i) -> Column& { return columns_->columns[first + i]; }) ||
               !bytes.empty()) {
      return state::CannotLoad(
          ErrorKind::kCorrupt, "UNCATEGORIZED",
          "A row of the state does not have its " + std::to_string(columns_->columns.size()) + " columns.");
    }
    first += count;
  }
  ++columns_->rows;
  return {};
}

std::int64_t RowDecoder::row_count() const { return columns_->rows; }
std::size_t RowDecoder::byte_count() const { return columns_->bytes; }

columnar::RecordBatch RowDecoder::Finish() {
  std::vector<ArrowArray> columns;
  for (Column& column : columns_->columns) {
    columns.push_back(FinishColumn(std::move(column)));
  }
  columnar::RecordBatch batch = columnar::MakeBatch(columns_->schema, columns_->rows, std::move(columns));
  columns_->Begin();
  return batch;
}

namespace {
/// A batch is closed at this many bytes: lists and sketches may be large.
constexpr std::size_t kBatchBytes = std::size_t{32} << 20;
}  // namespace

BatchedRows::BatchedRows(RowDecoder decoder, std::vector<columnar::RecordBatch>* out, std::int64_t batch_rows)
    : decoder_(std::move(decoder)), out_(out), batch_rows_(batch_rows) {}

bool BatchedRows::Add(std::initializer_list<std::string_view> parts) {
  if (failure_) {
    return false;
  }
  if (auto added = decoder_.Add(parts); !added.ok()) {
    failure_ = std::move(added).error();
    return false;
  }
  if (decoder_.row_count() >= batch_rows_ || decoder_.byte_count() >= kBatchBytes) {
    out_->push_back(decoder_.Finish());
  }
  return true;
}

Result<void> BatchedRows::Finish() {
  if (failure_) {
    return *failure_;
  }
  if (decoder_.row_count() > 0) {
    out_->push_back(decoder_.Finish());
  }
  return {};
}

std::vector<std::int64_t> EventTimesOf(const columnar::RecordBatch& batch, std::size_t column) {
  const ArrowArray& root = *batch.array->get();
  const ArrowArray* array = root.children[column];
  const std::int64_t first = root.offset + array->offset;
  const std::int64_t count = batch.row_count();
  const bool is_window = batch.schema->fields()[column].type.Is(TypeKind::kStruct);
  const ArrowArray* times = is_window ? array->children[1] : array;
  const std::int64_t first_time = is_window ? first + times->offset : first;
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  const auto* values = static_cast<const std::int64_t*>(times->buffers[1]);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool null = IsNull(*array, first + i) || IsNull(*times, first_time + i);
    out[static_cast<std::size_t>(i)] = null ? kNoTime : values[first_time + i];
  }
  return out;
}

columnar::RecordBatch WithBooleans(const columnar::RecordBatch& batch, const std::vector<bool>& values,
                                   std::shared_ptr<const types::Schema> schema) {
  const ArrowArray& old = *batch.array->get();
  std::vector<ArrowArray> columns;
  for (std::int64_t i = 0; i < old.n_children; ++i) {
    columns.push_back(columnar::ShareArray(*old.children[i], batch.array));
  }
  // Rows before the batch's own offset exist in its children.
  Column marks(DataType::Boolean());
  for (std::int64_t i = 0; i < old.offset; ++i) {
    marks.AppendNull();
  }
  for (bool value : values) {
    marks.AppendBit(marks.validity, true);
    marks.AppendBit(marks.data, value);
    ++marks.length;
  }
  columns.push_back(FinishColumn(std::move(marks)));
  columnar::RecordBatch out = columnar::MakeBatch(std::move(schema), old.length, std::move(columns));
  out.array->get()->offset = old.offset;
  return out;
}

}  // namespace fleuve::operators
