#include <cmath>
#include <cstring>

#include "operators/row_codec_internal.h"
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

void AppendLength(std::string& out, std::size_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

template <typename T>
void AppendRaw(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
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
  AppendRaw(out, value);
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
  AppendLength(out, static_cast<std::size_t>(end - begin));
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

bool TakeLength(std::string_view& text, std::size_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    *value |= static_cast<std::size_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      return true;
    }
  }
  return false;
}

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
    if (!TakeLength(bytes, &count)) {
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
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(count));
  }
  ++length;
  return true;
}

/// What an ArrowArray of ours owns.
struct Node {
  std::string validity;
  std::string data;
  std::vector<std::int32_t> offsets;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> child_pointers;
  /// Arrays of another owner that children point into.
  std::shared_ptr<columnar::ArrayHolder> shared;
};

void ReleaseNode(ArrowArray* array) {
  auto* node = static_cast<Node*>(array->private_data);
  for (ArrowArray& child : node->children) {
    if (child.release != nullptr) {
      child.release(&child);
    }
  }
  delete node;
  array->release = nullptr;
}

void FinishArray(std::unique_ptr<Node> node, std::int64_t length, std::int64_t nulls, ArrowArray* out) {
  *out = ArrowArray{};
  for (ArrowArray& child : node->children) {
    node->child_pointers.push_back(&child);
  }
  out->length = length;
  out->null_count = nulls;
  out->n_buffers = static_cast<std::int64_t>(node->buffers.size());
  out->buffers = node->buffers.data();
  out->n_children = static_cast<std::int64_t>(node->children.size());
  out->children = node->child_pointers.data();
  out->release = ReleaseNode;
  out->private_data = node.release();
}

void FinishColumn(Column&& column, ArrowArray* out) {
  auto node = std::make_unique<Node>();
  const DataType type = column.type;
  node->validity = std::move(column.validity);
  node->data = std::move(column.data);
  node->offsets = std::move(column.offsets);
  // Text without any byte still has a buffer.
  if (node->data.capacity() == 0) {
    node->data.reserve(1);
  }
  node->children.resize(column.parts.size());
  for (std::size_t i = 0; i < column.parts.size(); ++i) {
    FinishColumn(std::move(column.parts[i]), &node->children[i]);
  }
  const void* validity = column.nulls > 0 ? node->validity.data() : nullptr;
  if (type.Is(TypeKind::kVoid)) {
    // No buffers.
  } else if (WidthOf(type) > 0) {
    node->buffers = {validity, node->data.data()};
  } else if (IsStruct(type)) {
    node->buffers = {validity};
  } else if (IsList(type)) {
    node->buffers = {validity, node->offsets.data()};
  } else {
    node->buffers = {validity, node->offsets.data(), node->data.data()};
  }
  FinishArray(std::move(node), column.length, column.nulls, out);
}

}  // namespace

struct RowDecoder::Columns {
  std::shared_ptr<const types::Schema> schema;
  std::vector<std::size_t> fields_per_part;
  std::vector<Column> columns;
  std::int64_t rows = 0;

  void Begin() {
    columns.clear();
    for (const auto& field : schema->fields()) {
      columns.emplace_back(field.type);
    }
    rows = 0;
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

Result<void> RowDecoder::Add(const std::vector<std::string_view>& parts) {
  std::size_t first = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const std::size_t count = columns_->fields_per_part[part];
    std::string_view bytes = parts[part];
    if (bytes.data() == nullptr) {
      for (std::size_t i = 0; i < count; ++i) {
        columns_->columns[first + i].AppendNull();
      }
    } else if (!TakeAll(bytes, count, [&](std::size_t i) -> Column& { return columns_->columns[first + i]; }) ||
               !bytes.empty()) {
      return Error(ErrorKind::kCorrupt, "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED",
                   "An error occurred during loading state. A row of the state does not have its " +
                       std::to_string(columns_->columns.size()) + " columns" + ".");
    }
    first += count;
  }
  ++columns_->rows;
  return {};
}

std::int64_t RowDecoder::row_count() const { return columns_->rows; }

columnar::RecordBatch RowDecoder::Finish() {
  auto node = std::make_unique<Node>();
  node->buffers = {nullptr};
  node->children.resize(columns_->columns.size());
  for (std::size_t i = 0; i < columns_->columns.size(); ++i) {
    FinishColumn(std::move(columns_->columns[i]), &node->children[i]);
  }
  ArrowArray root;
  FinishArray(std::move(node), columns_->rows, 0, &root);
  columnar::RecordBatch batch;
  batch.schema = columns_->schema;
  batch.array = std::make_shared<columnar::ArrayHolder>(&root);
  columns_->Begin();
  return batch;
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

namespace {

/// A copy of a child whose owner is `holder`.
ArrowArray SharedChild(const ArrowArray& child, const std::shared_ptr<columnar::ArrayHolder>& holder) {
  ArrowArray copy = child;
  copy.private_data = new std::shared_ptr<columnar::ArrayHolder>(holder);
  copy.release = [](ArrowArray* array) {
    delete static_cast<std::shared_ptr<columnar::ArrayHolder>*>(array->private_data);
    array->release = nullptr;
  };
  return copy;
}

}  // namespace

columnar::RecordBatch WithBooleans(const columnar::RecordBatch& batch, const std::vector<bool>& values,
                                   std::shared_ptr<const types::Schema> schema) {
  const ArrowArray& old = *batch.array->get();
  auto node = std::make_unique<Node>();
  node->buffers = {nullptr};
  for (std::int64_t i = 0; i < old.n_children; ++i) {
    node->children.push_back(SharedChild(*old.children[i], batch.array));
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
  node->children.emplace_back();
  FinishColumn(std::move(marks), &node->children.back());
  ArrowArray root;
  FinishArray(std::move(node), old.length, 0, &root);
  root.offset = old.offset;
  columnar::RecordBatch out;
  out.schema = std::move(schema);
  out.array = std::make_shared<columnar::ArrayHolder>(&root);
  return out;
}

columnar::RecordBatch FirstRows(const columnar::RecordBatch& batch, std::int64_t count) {
  const ArrowArray& old = *batch.array->get();
  auto node = std::make_unique<Node>();
  node->buffers = {nullptr};
  for (std::int64_t i = 0; i < old.n_children; ++i) {
    node->children.push_back(SharedChild(*old.children[i], batch.array));
  }
  ArrowArray root;
  FinishArray(std::move(node), count, 0, &root);
  root.offset = old.offset;
  columnar::RecordBatch out;
  out.schema = batch.schema;
  out.array = std::make_shared<columnar::ArrayHolder>(&root);
  return out;
}

}  // namespace fleuve::operators
