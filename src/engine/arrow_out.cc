#include <cstring>
#include <utility>

#include "columnar/arrays.h"
#include "engine/arrow_rows_internal.h"
#include "engine/carriers_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

using duckdb::idx_t;
using types::DataType;
using types::TypeKind;

namespace {

std::size_t FixedWidth(const DataType& type) {
  switch (type.kind()) {
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
    default:
      return 0;
  }
}

}  // namespace

/// Builds one array. Rows are appended from flat vectors.
class ArrowColumnBuilder {
 public:
  explicit ArrowColumnBuilder(const DataType& type) : type_(type), width_(FixedWidth(type)) {
    switch (type.kind()) {
      case TypeKind::kArray:
        children_.push_back(std::make_unique<ArrowColumnBuilder>(type.element()));
        break;
      case TypeKind::kMap: {
        // The entries are a struct of key and value.
        std::vector<types::StructField> fields = {{"key", type.key(), false, Json()},
                                                  {"value", type.value(), true, Json()}};
        children_.push_back(std::make_unique<ArrowColumnBuilder>(DataType::Struct(std::move(fields))));
        break;
      }
      case TypeKind::kStruct:
        for (const auto& field : type.fields()) {
          children_.push_back(std::make_unique<ArrowColumnBuilder>(field.type));
        }
        break;
      case TypeKind::kVariant:
        children_.push_back(std::make_unique<ArrowColumnBuilder>(DataType::Binary()));
        children_.push_back(std::make_unique<ArrowColumnBuilder>(DataType::Binary()));
        break;
      default:
        break;
    }
    if (HasOffsets()) {
      offsets_.push_back(0);
    }
  }

  std::int64_t bytes() const {
    std::int64_t total = static_cast<std::int64_t>(data_.size() + offsets_.size() * 4 + validity_.size());
    for (const auto& child : children_) {
      total += child->bytes();
    }
    return total;
  }

  /// Rows first..first+count-1 of a flat vector. \param parents  validity of the struct around, or null
  void Append(duckdb::Vector& vector, idx_t first, idx_t count, const duckdb::ValidityMask* parents) {
    vector.Flatten(first + count);
    const auto& mask = duckdb::FlatVector::Validity(vector);
    const auto valid = [&](idx_t row) {
      return mask.RowIsValid(row) && (parents == nullptr || parents->RowIsValid(row));
    };
    const bool all_valid = mask.AllValid() && (parents == nullptr || parents->AllValid());
    AppendValidity(count, all_valid, first, valid);
    switch (type_.kind()) {
      case TypeKind::kVoid:
        break;
      case TypeKind::kBoolean: {
        const auto* values = duckdb::FlatVector::GetData<bool>(vector);
        data_.resize((static_cast<std::size_t>(length_ + static_cast<std::int64_t>(count)) + 7) / 8, 0);
        for (idx_t i = 0; i < count; i++) {
          // The value of a NULL may be no boolean at all.
          if ((all_valid || valid(first + i)) && values[first + i]) {
            const auto bit = static_cast<std::size_t>(length_) + i;
            data_[bit / 8] |= static_cast<std::uint8_t>(1U << (bit % 8));
          }
        }
        break;
      }
      case TypeKind::kDecimal:
        AppendDecimals(vector, first, count, all_valid, valid);
        break;
      case TypeKind::kString:
      case TypeKind::kChar:
      case TypeKind::kVarchar:
      case TypeKind::kBinary: {
        const auto* values = duckdb::FlatVector::GetData<duckdb::string_t>(vector);
        std::size_t total = 0;
        for (idx_t i = 0; i < count; i++) {
          if (all_valid || valid(first + i)) {
            total += values[first + i].GetSize();
          }
        }
        const std::size_t start = data_.size();
        if (start + total > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
          RaiseError(Error(ErrorKind::kResourceExhausted, "FLEUVE_OUT_OF_MEMORY",
                           "One batch of rows holds more than 2 GiB of text in one column."));
        }
        data_.resize(start + total);
        std::size_t at = start;
        for (idx_t i = 0; i < count; i++) {
          if (all_valid || valid(first + i)) {
            const auto& value = values[first + i];
            if (value.GetSize() > 0) {  // where every text is empty there is no room to point to
              std::memcpy(data_.data() + at, value.GetData(), value.GetSize());
            }
            at += value.GetSize();
          }
          offsets_.push_back(static_cast<std::int32_t>(at));
        }
        break;
      }
      case TypeKind::kCalendarInterval: {
        auto& parts = duckdb::StructVector::GetEntries(vector);
        for (auto& part : parts) {
          part->Flatten(first + count);
        }
        const auto* months = duckdb::FlatVector::GetData<std::int32_t>(*parts[0]);
        const auto* days = duckdb::FlatVector::GetData<std::int32_t>(*parts[1]);
        const auto* micros = duckdb::FlatVector::GetData<std::int64_t>(*parts[2]);
        const std::size_t start = data_.size();
        data_.resize(start + count * 16, 0);
        for (idx_t i = 0; i < count; i++) {
          if (all_valid || valid(first + i)) {
            auto* out = data_.data() + start + i * 16;
            std::int64_t nanos = 0;
            if (__builtin_mul_overflow(micros[first + i], std::int64_t{1000}, &nanos)) {
              RaiseError(Error(ErrorKind::kInvalidArgument, "", "long overflow").Family(ErrorFamily::kArithmetic));
            }
            std::memcpy(out, &months[first + i], 4);
            std::memcpy(out + 4, &days[first + i], 4);
            std::memcpy(out + 8, &nanos, 8);
          }
        }
        break;
      }
      case TypeKind::kArray:
      case TypeKind::kMap: {
        const auto* entries = duckdb::FlatVector::GetData<duckdb::list_entry_t>(vector);
        auto& child = duckdb::ListVector::GetEntry(vector);
        child.Flatten(duckdb::ListVector::GetListSize(vector));
        for (idx_t i = 0; i < count; i++) {
          if ((all_valid || valid(first + i)) && entries[first + i].length > 0) {
            // Neighbours in memory go in one piece.
            idx_t last = i;
            idx_t length = entries[first + i].length;
            const idx_t begin = entries[first + i].offset;
            offsets_.push_back(static_cast<std::int32_t>(children_[0]->length_ + static_cast<std::int64_t>(length)));
            while (last + 1 < count && (all_valid || valid(first + last + 1)) &&
                   entries[first + last + 1].offset == begin + length) {
              last++;
              length += entries[first + last].length;
              offsets_.push_back(static_cast<std::int32_t>(children_[0]->length_ + static_cast<std::int64_t>(length)));
            }
            children_[0]->Append(child, begin, length, nullptr);
            i = last;
          } else {
            offsets_.push_back(static_cast<std::int32_t>(children_[0]->length_));
          }
        }
        break;
      }
      case TypeKind::kStruct:
      case TypeKind::kVariant: {
        auto& parts = duckdb::StructVector::GetEntries(vector);
        duckdb::ValidityMask both;
        const duckdb::ValidityMask* inner = all_valid ? nullptr : &mask;
        if (!all_valid && parents != nullptr) {
          both.Initialize(first + count);
          for (idx_t i = 0; i < count; i++) {
            both.Set(first + i, valid(first + i));
          }
          inner = &both;
        }
        for (std::size_t i = 0; i < children_.size(); i++) {
          children_[i]->Append(*parts[i], first, count, inner);
        }
        break;
      }
      default: {
        const auto* values = duckdb::FlatVector::GetData(vector) + first * width_;
        data_.insert(data_.end(), values, values + count * width_);
        break;
      }
    }
    length_ += static_cast<std::int64_t>(count);
  }

  /// Everything that was appended; the builder is empty afterwards.
  ArrowArray Finish() {
    const auto owner = std::make_shared<std::vector<std::vector<std::uint8_t>>>();
    std::vector<const void*> buffers;
    if (!type_.Is(TypeKind::kVoid)) {
      const bool has_nulls = null_count_ > 0;
      owner->push_back(has_nulls ? std::move(validity_) : std::vector<std::uint8_t>());
      if (HasOffsets()) {
        std::vector<std::uint8_t> bytes(offsets_.size() * 4);
        std::memcpy(bytes.data(), offsets_.data(), bytes.size());
        owner->push_back(std::move(bytes));
      }
      if (!type_.IsNested() && !type_.Is(TypeKind::kVariant)) {
        if (data_.empty()) {
          data_.reserve(8);  // a buffer must have an address
        }
        owner->push_back(std::move(data_));
      }
      for (std::size_t i = 0; i < owner->size(); i++) {
        buffers.push_back(i == 0 && !has_nulls ? nullptr : (*owner)[i].data());
      }
    }
    std::vector<ArrowArray> children;
    for (const auto& child : children_) {
      children.push_back(child->Finish());
    }
    const ArrowArray array = columnar::MakeArray(length_, type_.Is(TypeKind::kVoid) ? length_ : null_count_,
                                                 std::move(buffers), std::move(children), owner);
    data_ = {};
    validity_ = {};
    offsets_.clear();
    if (HasOffsets()) {
      offsets_.push_back(0);
    }
    length_ = 0;
    null_count_ = 0;
    return array;
  }

 private:
  bool HasOffsets() const {
    return type_.IsString() || type_.Is(TypeKind::kBinary) || type_.Is(TypeKind::kArray) || type_.Is(TypeKind::kMap);
  }

  template <typename Valid>
  void AppendValidity(idx_t count, bool all_valid, idx_t first, const Valid& valid) {
    const auto begin = static_cast<std::size_t>(length_);
    validity_.resize((begin + count + 7) / 8, 0);
    if (all_valid) {
      for (idx_t i = 0; i < count; i++) {
        const std::size_t bit = begin + i;
        validity_[bit / 8] |= static_cast<std::uint8_t>(1U << (bit % 8));
      }
      return;
    }
    for (idx_t i = 0; i < count; i++) {
      const std::size_t bit = begin + i;
      if (valid(first + i)) {
        validity_[bit / 8] |= static_cast<std::uint8_t>(1U << (bit % 8));
      } else {
        null_count_++;
      }
    }
  }

  template <typename Valid>
  void AppendDecimals(duckdb::Vector& vector, idx_t first, idx_t count, bool all_valid, const Valid& valid) {
    const std::size_t start = data_.size();
    data_.resize(start + count * 16, 0);
    const auto put = [&](auto value_of) {
      for (idx_t i = 0; i < count; i++) {
        if (all_valid || valid(first + i)) {
          const types::Int128 value = value_of(first + i);
          std::memcpy(data_.data() + start + i * 16, &value, 16);
        }
      }
    };
    switch (vector.GetType().InternalType()) {
      case duckdb::PhysicalType::INT16: {
        const auto* values = duckdb::FlatVector::GetData<std::int16_t>(vector);
        put([values](idx_t i) { return static_cast<types::Int128>(values[i]); });
        break;
      }
      case duckdb::PhysicalType::INT32: {
        const auto* values = duckdb::FlatVector::GetData<std::int32_t>(vector);
        put([values](idx_t i) { return static_cast<types::Int128>(values[i]); });
        break;
      }
      case duckdb::PhysicalType::INT64: {
        const auto* values = duckdb::FlatVector::GetData<std::int64_t>(vector);
        put([values](idx_t i) { return static_cast<types::Int128>(values[i]); });
        break;
      }
      default: {
        const auto* values = duckdb::FlatVector::GetData<duckdb::hugeint_t>(vector);
        put([values](idx_t i) { return ToInt128(values[i]); });
        break;
      }
    }
  }

  DataType type_;
  std::size_t width_;
  std::vector<std::uint8_t> data_;
  std::vector<std::uint8_t> validity_;
  std::vector<std::int32_t> offsets_;
  std::vector<std::unique_ptr<ArrowColumnBuilder>> children_;
  std::int64_t length_ = 0;
  std::int64_t null_count_ = 0;
};

ArrowBatchBuilder::ArrowBatchBuilder(std::shared_ptr<const types::Schema> schema) : schema_(std::move(schema)) {
  Begin();
}

ArrowBatchBuilder::~ArrowBatchBuilder() = default;

void ArrowBatchBuilder::Begin() {
  columns_.clear();
  for (const auto& field : schema_->fields()) {
    columns_.push_back(std::make_unique<ArrowColumnBuilder>(field.type));
  }
  rows_ = 0;
}

void ArrowBatchBuilder::Append(duckdb::DataChunk& chunk) {
  for (std::size_t i = 0; i < columns_.size(); i++) {
    columns_[i]->Append(chunk.data[i], 0, chunk.size(), nullptr);
  }
  rows_ += static_cast<std::int64_t>(chunk.size());
}

std::int64_t ArrowBatchBuilder::bytes() const {
  std::int64_t total = 0;
  for (const auto& column : columns_) {
    total += column->bytes();
  }
  return total;
}

columnar::RecordBatch ArrowBatchBuilder::Finish() {
  std::vector<ArrowArray> columns;
  for (const auto& column : columns_) {
    columns.push_back(column->Finish());
  }
  return columnar::MakeBatch(schema_, std::exchange(rows_, 0), std::move(columns));
}

}  // namespace fleuve::engine
