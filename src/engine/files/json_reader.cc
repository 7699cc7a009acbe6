// Reading JSON files: one document a line, or one a file.

#include <simdjson.h>

#include <deque>
#include <set>

#include "engine/carriers_internal.h"
#include "engine/files/byte_stream_internal.h"
#include "engine/files/containers_internal.h"
#include "engine/files/json_value_internal.h"
#include "engine/files/row_target_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::idx_t;

class JsonReader final : public RecordReader, public JsonUnknownFields {
 public:
  JsonReader(const TextScanPlan& plan, const FilePart& part)
      : plan_(plan),
        part_(part),
        options_(plan.json),
        parser_(plan.json, plan.scan->unknown_fields != nullptr ? this : nullptr),
        root_(CompileRoot(plan)),
        rescuing_(!plan.json.rescued_column.empty()) {
    if (!options_.container.empty()) {
      auto documents = options_.container == "xml"
                           ? OpenXml(part.file->path, plan.scan->options, plan.scan->data_schema)
                           : OpenAvro(part.file->path);
      if (!documents.ok()) {
        RaiseError(FailedReadFile(part.file->uri, documents.error()));
      }
      documents_ = std::move(documents).value();
    } else if (!options_.multi_line) {
      auto stream = OpenFile(part.file->path, part.begin, options_.encoding);
      if (!stream.ok()) {
        RaiseError(FailedReadFile(part.file->uri, stream.error()));
      }
      lines_ = std::make_unique<LineReader>(std::move(stream).value(), part.begin, part.end, options_.line_separator);
    }
  }

  idx_t Read(RowTarget& target, idx_t capacity) override {
    idx_t count = 0;
    held_ = nullptr;  // the target's vectors are new
    while (count < capacity) {
      if (!pending_.empty()) {
        if (count > 0) {
          return count;
        }
        return EmitPending(target);
      }
      std::string_view record;
      if (!NextRecord(&record)) {
        if (failure_ && count == 0) {
          RaiseError(*failure_);
        }
        break;
      }
      count += Record(record, target, count);
    }
    return count;
  }

  void OnUnknown(const std::string& path, bool other_case) override {
    if (other_case || known_.contains(path)) {
      return;
    }
    if (auto error = plan_.scan->unknown_fields->OnUnknownField(*part_.file, path, record_)) {
      RaiseError(*error);
    }
    known_.insert(path);
  }

 private:
  static std::unique_ptr<JsonNode> CompileRoot(const TextScanPlan& plan) {
    std::vector<types::StructField> fields = plan.scan->data_schema.fields();
    // The columns for corrupt records and rescued data are no fields of a record.
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (static_cast<int>(i) == plan.corrupt_index || static_cast<int>(i) == plan.rescued_index) {
        fields[i].name = "\x01" + fields[i].name;
      }
    }
    return CompileJsonNode(types::DataType::Struct(std::move(fields)));
  }

  bool NextRecord(std::string_view* record) {
    const bool got = NextDocument(record);
    if (documents_ == nullptr) {
      raw_ = *record;
    }
    return got;
  }

  bool NextDocument(std::string_view* record) {
    if (documents_ != nullptr) {
      auto more = documents_->Next(record, &raw_);
      if (!more.ok()) {
        failure_ = FailedReadFile(part_.file->uri, more.error());
        return false;
      }
      return *more;
    }
    if (options_.multi_line) {
      if (document_read_) {
        return false;
      }
      document_read_ = true;
      auto text = ReadWholeFile(part_.file->path, options_.encoding);
      if (!text.ok()) {
        failure_ = FailedReadFile(part_.file->uri, text.error());
        return false;
      }
      document_ = std::move(text).value();
      *record = document_;
      return true;
    }
    auto more = lines_->Next(record);
    if (!more.ok()) {
      failure_ = FailedReadFile(part_.file->uri, more.error());
      return false;
    }
    if (lines_->block().get() != held_) {
      held_ = lines_->block().get();
      parser_.HoldTexts(&lines_->block());
    }
    return *more;
  }

  /// Parses one record into row `row` of the target, or into pending chunks; returns the rows put into the target.
  idx_t Record(std::string_view record, RowTarget& target, idx_t row) {
    JsonScanner& scanner = parser_.scanner();
    scanner.Reset(record);
    if (!scanner.SkipBlank()) {
      if (scanner.error() == nullptr) {
        return 0;
      }
      return Malformed(raw_, scanner.error(), target, row, false);
    }
    if (!simdjson::validate_utf8(record.data(), record.size())) {
      return Malformed(raw_, "invalid UTF-8", target, row, false);
    }
    record_ = record;
    const JsonToken token = scanner.Begin();
    if (token == JsonToken::kArray) {
      return Documents(target, row);
    }
    if (token != JsonToken::kObject) {
      return Malformed(raw_, "the record is no object", target, row, false);
    }
    rescued_.clear();
    const JsonOutcome outcome = parser_.Object(*root_, target.columns, row, rescuing_ ? &rescued_ : nullptr);
    if (outcome == JsonOutcome::kSyntax) {
      return Malformed(raw_, scanner.error() != nullptr ? scanner.error() : "the document nests too deeply", target,
                       row, false);
    }
    if (outcome == JsonOutcome::kPartial) {
      return Malformed(raw_, "a value does not fit its column", target, row, true);
    }
    FinishRow(target, row);
    return 1;
  }

  void FinishRow(RowTarget& target, idx_t row) {
    if (plan_.corrupt_index >= 0) {
      if (duckdb::Vector* column = target.columns[static_cast<std::size_t>(plan_.corrupt_index)]) {
        SetNull(*column, row);
      }
    }
    SetRescued(target, row);
  }

  void SetRescued(RowTarget& target, idx_t row) {
    duckdb::Vector* column =
        plan_.rescued_index >= 0 ? target.columns[static_cast<std::size_t>(plan_.rescued_index)] : target.rescued;
    if (column == nullptr) {
      return;
    }
    if (rescued_.empty()) {
      SetNull(*column, row);
      return;
    }
    std::string text = "{" + rescued_;
    if (options_.rescued_file_path) {
      text += ",\"_file_path\":";
      AppendJsonString(text, part_.file->uri);
    }
    text += "}";
    SetText(*column, row, text);
  }

  /// \param stored  the row holds what could be read
  idx_t Malformed(std::string_view record, std::string_view reason, RowTarget& target, idx_t row, bool stored) {
    if (plan_.bad_records != nullptr) {
      plan_.bad_records->Add(part_.file->uri, record, reason);
      return 0;
    }
    if (options_.mode == ParseMode::kFailFast) {
      RaiseError(MalformedRecord(part_.file->uri, record, reason));
    }
    if (options_.mode == ParseMode::kDropMalformed) {
      return 0;
    }
    if (!stored) {
      for (duckdb::Vector* column : target.columns) {
        if (column != nullptr) {
          SetNull(*column, row);
        }
      }
    }
    if (plan_.corrupt_index >= 0) {
      if (duckdb::Vector* column = target.columns[static_cast<std::size_t>(plan_.corrupt_index)]) {
        SetText(*column, row, record);
      }
    }
    rescued_.clear();
    SetRescued(target, row);
    return 1;
  }

  struct Chunk {
    duckdb::DataChunk data;
    RowTarget target;
  };

  std::unique_ptr<Chunk> NewChunk(const RowTarget& like) {
    auto chunk = std::make_unique<Chunk>();
    duckdb::vector<duckdb::LogicalType> types;
    for (duckdb::Vector* column : like.columns) {
      if (column != nullptr) {
        types.push_back(column->GetType());
      }
    }
    if (like.rescued != nullptr) {
      types.push_back(like.rescued->GetType());
    }
    if (!types.empty()) {
      chunk->data.Initialize(duckdb::Allocator::DefaultAllocator(), types);
    }
    std::size_t next = 0;
    for (duckdb::Vector* column : like.columns) {
      chunk->target.columns.push_back(column != nullptr ? &chunk->data.data[next++] : nullptr);
    }
    chunk->target.rescued = like.rescued != nullptr ? &chunk->data.data[next++] : nullptr;
    return chunk;
  }

  /// An array at the top: each element is a row. Nothing is given out before the whole array has been read.
  idx_t Documents(RowTarget& target, idx_t row) {
    parser_.HoldTexts(nullptr);  // rows go to several chunks
    held_ = nullptr;
    JsonScanner& scanner = parser_.scanner();
    scanner.Open();
    std::deque<std::unique_ptr<Chunk>> chunks;
    std::vector<idx_t> counts;
    bool partial = false;
    bool first = true;
    const char* failure = nullptr;
    for (;;) {
      const int got = scanner.NextElement(first);
      if (got == 0) {
        break;
      }
      first = false;
      if (got < 0 || scanner.Begin() != JsonToken::kObject) {
        failure = scanner.error() != nullptr ? scanner.error() : "an element is no object";
        break;
      }
      if (chunks.empty() || counts.back() == STANDARD_VECTOR_SIZE) {
        chunks.push_back(NewChunk(target));
        counts.push_back(0);
      }
      rescued_.clear();
      const JsonOutcome outcome =
          parser_.Object(*root_, chunks.back()->target.columns, counts.back(), rescuing_ ? &rescued_ : nullptr);
      if (outcome == JsonOutcome::kSyntax) {
        failure = scanner.error() != nullptr ? scanner.error() : "the document nests too deeply";
        break;
      }
      partial = partial || outcome == JsonOutcome::kPartial;
      FinishRow(chunks.back()->target, counts.back());
      ++counts.back();
    }
    if (failure != nullptr) {
      return Malformed(raw_, failure, target, row, false);
    }
    if (partial) {
      constexpr std::string_view kReason = "a value does not fit its column";
      if (plan_.bad_records != nullptr) {
        plan_.bad_records->Add(part_.file->uri, raw_, kReason);
        return 0;
      }
      if (options_.mode == ParseMode::kFailFast) {
        RaiseError(MalformedRecord(part_.file->uri, raw_, kReason));
      }
      if (options_.mode == ParseMode::kDropMalformed) {
        return 0;
      }
    }
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (partial && plan_.corrupt_index >= 0) {
        if (duckdb::Vector* column = chunks[i]->target.columns[static_cast<std::size_t>(plan_.corrupt_index)]) {
          for (idx_t k = 0; k < counts[i]; ++k) {
            SetText(*column, k, raw_);
          }
        }
      }
      pending_.emplace_back(std::move(chunks[i]), counts[i]);
    }
    return 0;
  }

  idx_t EmitPending(RowTarget& target) {
    emitted_ = std::move(pending_.front().first);
    const idx_t count = pending_.front().second;
    pending_.pop_front();
    for (std::size_t i = 0; i < target.columns.size(); ++i) {
      if (target.columns[i] != nullptr) {
        target.columns[i]->Reference(*emitted_->target.columns[i]);
      }
    }
    if (target.rescued != nullptr) {
      target.rescued->Reference(*emitted_->target.rescued);
    }
    return count;
  }

  const TextScanPlan& plan_;
  const FilePart part_;
  const JsonOptions& options_;
  JsonValueParser parser_;
  std::unique_ptr<JsonNode> root_;
  const bool rescuing_;
  std::unique_ptr<LineReader> lines_;
  /// The block of lines that the parser knows of.
  const char* held_ = nullptr;
  /// Why the file could not be read on; raised once the rows before it have been given.
  std::optional<Error> failure_;
  bool document_read_ = false;
  std::string document_;
  std::unique_ptr<DocumentSource> documents_;
  std::string_view record_;
  /// The record's own text, for corrupt records.
  std::string_view raw_;
  std::string rescued_;
  std::set<std::string> known_;
  std::deque<std::pair<std::unique_ptr<Chunk>, idx_t>> pending_;
  std::unique_ptr<Chunk> emitted_;
};

}  // namespace

std::unique_ptr<RecordReader> MakeJsonReader(const TextScanPlan& plan, const FilePart& part) {
  return std::make_unique<JsonReader>(plan, part);
}

}  // namespace fleuve::engine
