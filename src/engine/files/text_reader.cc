// Reading text files: one row a line, or one a file.

#include "engine/files/byte_stream_internal.h"
#include "engine/files/row_target_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::idx_t;

class TextReader final : public RecordReader {
 public:
  TextReader(const TextScanPlan& plan, const FilePart& part) : plan_(plan), part_(part) {
    if (!plan.text.whole_text) {
      auto stream = OpenFile(part.file->path, part.begin, plan.text.encoding);
      if (!stream.ok()) {
        RaiseError(FailedReadFile(part.file->uri, stream.error()));
      }
      lines_ = std::make_unique<LineReader>(std::move(stream).value(), part.begin, part.end, plan.text.line_separator);
    }
  }

  idx_t Read(RowTarget& target, idx_t capacity) override {
    if (target.rescued != nullptr) {
      for (idx_t i = 0; i < capacity; ++i) {
        SetNull(*target.rescued, i);
      }
    }
    if (plan_.text.whole_text) {
      if (done_) {
        return 0;
      }
      done_ = true;
      auto text = ReadWholeFile(part_.file->path, plan_.text.encoding);
      if (!text.ok()) {
        RaiseError(FailedReadFile(part_.file->uri, text.error()));
      }
      Put(target, 0, *text);
      return 1;
    }
    idx_t count = 0;
    while (count < capacity) {
      std::string_view line;
      auto more = lines_->Next(&line);
      if (!more.ok()) {
        if (count > 0) {
          return count;
        }
        RaiseError(FailedReadFile(part_.file->uri, more.error()));
      }
      if (!*more) {
        break;
      }
      Put(target, count++, line);
    }
    return count;
  }

 private:
  static void Put(RowTarget& target, idx_t row, std::string_view text) {
    for (duckdb::Vector* column : target.columns) {
      if (column != nullptr) {
        SetText(*column, row, text);
      }
    }
  }

  const TextScanPlan& plan_;
  const FilePart part_;
  std::unique_ptr<LineReader> lines_;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<RecordReader> MakeTextReader(const TextScanPlan& plan, const FilePart& part) {
  return std::make_unique<TextReader>(plan, part);
}

}  // namespace fleuve::engine
