// Records as Arrow batches.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "columnar/arrays.h"
#include "connectors/kafka/kafka_internal.h"

namespace fleuve::connectors::kafka {

namespace {

using types::DataType;

constexpr std::int64_t kBatchRows = 8192;
/// What a record needs beside its key, value and headers.
constexpr std::int64_t kRowBytes = 64;
constexpr std::size_t kBatchBytes = std::size_t{64} << 20;

/// Buffers of one column, kept alive by the array that points into them.
struct Column {
  std::vector<std::uint8_t> validity;
  std::vector<std::uint8_t> data;
  std::vector<std::int32_t> offsets;
  std::int64_t length = 0;
  std::int64_t nulls = 0;
  /// Stands for `data` where that was moved out of memory.
  std::shared_ptr<const std::uint8_t> mapped;

  void MoveOut(Spill& spill) {
    mapped = spill.Store(data);
    if (mapped) {
      data = {};
    }
  }
  void PutValid(bool valid) {
    if (length % 8 == 0) {
      validity.push_back(0);
    }
    if (valid) {
      validity.back() = static_cast<std::uint8_t>(validity.back() | (1U << (length % 8)));
    } else {
      ++nulls;
    }
    ++length;
  }
  void PutBytes(const void* bytes, std::size_t size, bool valid) {
    if (offsets.empty()) {
      offsets.push_back(0);
    }
    if (valid && size > 0) {
      const auto* from = static_cast<const std::uint8_t*>(bytes);
      data.insert(data.end(), from, from + size);
    }
    offsets.push_back(static_cast<std::int32_t>(data.size()));
    PutValid(valid);
  }
  template <typename T>
  void Put(T value, bool valid = true) {
    const std::size_t at = data.size();
    data.resize(at + sizeof value);
    std::memcpy(data.data() + at, &value, sizeof value);
    PutValid(valid);
  }
  /// Ends a list of `child_length` values so far.
  void PutList(std::int64_t child_length, bool valid) {
    if (offsets.empty()) {
      offsets.push_back(0);
    }
    offsets.push_back(static_cast<std::int32_t>(child_length));
    PutValid(valid);
  }
};

enum class Shape { kFixed, kBytes, kList, kStruct };

ArrowArray ArrayOf(std::shared_ptr<Column> column, Shape shape, std::vector<ArrowArray> children) {
  static const std::int64_t kNothing = 0;
  std::vector<const void*> buffers = {column->nulls == 0 ? nullptr : column->validity.data()};
  if (shape == Shape::kBytes || shape == Shape::kList) {
    if (column->offsets.empty()) {
      column->offsets.push_back(0);
    }
    buffers.push_back(column->offsets.data());
  }
  if (shape == Shape::kBytes || shape == Shape::kFixed) {
    buffers.push_back(column->mapped         ? static_cast<const void*>(column->mapped.get())
                      : column->data.empty() ? static_cast<const void*>(&kNothing)
                                             : column->data.data());
  }
  const std::int64_t length = column->length;
  const std::int64_t nulls = column->nulls;
  return columnar::MakeArray(length, nulls, std::move(buffers), std::move(children), std::move(column));
}

}  // namespace

types::Schema RecordSchema(bool include_headers) {
  std::vector<types::StructField> fields = {
      {"key", DataType::Binary(), true, Json()},       {"value", DataType::Binary(), true, Json()},
      {"topic", DataType::String(), true, Json()},     {"partition", DataType::Int(), true, Json()},
      {"offset", DataType::Long(), true, Json()},      {"timestamp", DataType::Timestamp(), true, Json()},
      {"timestampType", DataType::Int(), true, Json()}};
  if (include_headers) {
    fields.push_back({"headers",
                      DataType::Array(DataType::Struct({{"key", DataType::String(), true, Json()},
                                                        {"value", DataType::Binary(), true, Json()}}),
                                      true),
                      true, Json()});
  }
  return DataType::Struct(std::move(fields));
}

struct RowBuilder::Columns {
  std::shared_ptr<Column> key = std::make_shared<Column>();
  std::shared_ptr<Column> value = std::make_shared<Column>();
  std::shared_ptr<Column> topic = std::make_shared<Column>();
  std::shared_ptr<Column> partition = std::make_shared<Column>();
  std::shared_ptr<Column> offset = std::make_shared<Column>();
  std::shared_ptr<Column> timestamp = std::make_shared<Column>();
  std::shared_ptr<Column> timestamp_type = std::make_shared<Column>();
  std::shared_ptr<Column> headers = std::make_shared<Column>();
  std::shared_ptr<Column> header = std::make_shared<Column>();
  std::shared_ptr<Column> header_key = std::make_shared<Column>();
  std::shared_ptr<Column> header_value = std::make_shared<Column>();
};

std::shared_ptr<const std::uint8_t> Spill::Store(const std::vector<std::uint8_t>& bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  seen_bytes_ += size;
  // Small buffers are not worth a mapping of their own.
  if (seen_bytes_ <= limit_bytes_ || size < 65536) {
    return nullptr;
  }
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base == nullptr || *base == '\0' ? "/tmp" : base) + "/fleuve-kafka-XXXXXX";
  const int file = ::mkstemp(name.data());
  if (file < 0) {
    return nullptr;
  }
  ::unlink(name.c_str());
  void* place = MAP_FAILED;
  // Room is taken first: a write into a hole of a full disk would end the process.
  if (::posix_fallocate(file, 0, size) == 0) {
    place = ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  if (place == MAP_FAILED) {
    return nullptr;
  }
  std::memcpy(place, bytes.data(), bytes.size());
  return std::shared_ptr<const std::uint8_t>(
      static_cast<const std::uint8_t*>(place),
      [length = bytes.size()](const std::uint8_t* at) { ::munmap(const_cast<std::uint8_t*>(at), length); });
}

RowBuilder::RowBuilder(std::shared_ptr<const types::Schema> schema, bool include_headers, std::shared_ptr<Spill> spill)
    : schema_(std::move(schema)),
      include_headers_(include_headers),
      spill_(std::move(spill)),
      columns_(std::make_unique<Columns>()) {}
RowBuilder::~RowBuilder() = default;
RowBuilder::RowBuilder(RowBuilder&&) noexcept = default;
RowBuilder& RowBuilder::operator=(RowBuilder&&) noexcept = default;

void RowBuilder::Add(const rd_kafka_message_t& message) {
  const std::size_t size = message.len + message.key_len;
  if (columns_->key->length > 0 &&
      (columns_->key->length >= kBatchRows ||
       columns_->value->data.size() + columns_->key->data.size() + columns_->header_value->data.size() + size >
           kBatchBytes)) {
    Close();
  }
  Columns& to = *columns_;
  to.key->PutBytes(message.key, message.key_len, message.key != nullptr);
  to.value->PutBytes(message.payload, message.len, message.payload != nullptr);
  const char* topic = rd_kafka_topic_name(message.rkt);
  to.topic->PutBytes(topic, std::strlen(topic), true);
  to.partition->Put<std::int32_t>(message.partition);
  to.offset->Put<std::int64_t>(message.offset);
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t time = rd_kafka_message_timestamp(&message, &type);
  to.timestamp->Put<std::int64_t>(type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1000 : time * 1000);
  to.timestamp_type->Put<std::int32_t>(type == RD_KAFKA_TIMESTAMP_CREATE_TIME       ? 0
                                       : type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME ? 1
                                                                                    : -1);
  if (include_headers_) {
    rd_kafka_headers_t* headers = nullptr;
    const bool some =
        rd_kafka_message_headers(&message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR && rd_kafka_header_cnt(headers) > 0;
    if (some) {
      const char* name = nullptr;
      const void* value = nullptr;
      std::size_t bytes = 0;
      for (std::size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &bytes) == RD_KAFKA_RESP_ERR_NO_ERROR;
           ++i) {
        to.header_key->PutBytes(name, std::strlen(name), true);
        to.header_value->PutBytes(value, bytes, value != nullptr);
        to.header->PutValid(true);
      }
    }
    to.headers->PutList(to.header->length, some);
  }
  bytes_ += static_cast<std::int64_t>(size) + kRowBytes;
}

void RowBuilder::Close() {
  Columns& from = *columns_;
  if (from.key->length == 0) {
    return;
  }
  for (Column* column : {from.key.get(), from.value.get(), from.header_value.get()}) {
    column->MoveOut(*spill_);
  }
  const std::int64_t length = from.key->length;
  std::vector<ArrowArray> children;
  children.push_back(ArrayOf(from.key, Shape::kBytes, {}));
  children.push_back(ArrayOf(from.value, Shape::kBytes, {}));
  children.push_back(ArrayOf(from.topic, Shape::kBytes, {}));
  children.push_back(ArrayOf(from.partition, Shape::kFixed, {}));
  children.push_back(ArrayOf(from.offset, Shape::kFixed, {}));
  children.push_back(ArrayOf(from.timestamp, Shape::kFixed, {}));
  children.push_back(ArrayOf(from.timestamp_type, Shape::kFixed, {}));
  if (include_headers_) {
    std::vector<ArrowArray> members;
    members.push_back(ArrayOf(from.header_key, Shape::kBytes, {}));
    members.push_back(ArrayOf(from.header_value, Shape::kBytes, {}));
    std::vector<ArrowArray> items;
    items.push_back(ArrayOf(from.header, Shape::kStruct, std::move(members)));
    children.push_back(ArrayOf(from.headers, Shape::kList, std::move(items)));
  }
  done_.push_back(columnar::MakeBatch(schema_, length, std::move(children)));
  columns_ = std::make_unique<Columns>();
}

std::vector<columnar::RecordBatch> RowBuilder::Take() {
  Close();
  bytes_ = 0;
  return std::exchange(done_, {});
}

}  // namespace fleuve::connectors::kafka
