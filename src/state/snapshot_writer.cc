#include <chrono>
#include <vector>

#include "base/failpoint.h"
#include "state/changelog_internal.h"
#include "state/snapshot_writer_internal.h"

namespace fleuve::state {

namespace {

Result<void> WriteAndSync(const storage::Location& folder, const std::string& path, std::string head,
                          const std::string& records) {
  std::string text = std::move(head);
  text.reserve(text.size() + records.size() + kCheckBytes);
  text += records;
  EndFile(text);
  FLEUVE_TRY(Failpoint("state.snapshot"));
  FLEUVE_TRY(folder.store->Put(path, text, storage::PutMode::kOverwrite));
  const std::vector<std::string> files = {path};
  const std::vector<std::string> folders = {folder.path};
  return folder.store->Sync(files, folders);
}

}  // namespace

SnapshotWriter::~SnapshotWriter() {
  if (writing_.valid()) {
    writing_.wait();
  }
}

bool SnapshotWriter::is_busy() const {
  return writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void SnapshotWriter::Write(std::string path, std::string head, std::string records) {
  writing_ = std::async(std::launch::async,
                        [folder = folder_, path = std::move(path), head = std::move(head),
                         records = std::move(records)] { return WriteAndSync(folder, path, head, records); });
}

Result<void> SnapshotWriter::Wait() { return writing_.valid() ? writing_.get() : Result<void>(); }

}  // namespace fleuve::state
