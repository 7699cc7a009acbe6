#pragma once

/// \file
/// The column of added files of a checkpoint, read without values in between.

#include <cstdint>
#include <optional>
#include <string_view>

#include "columnar/record_batch.h"
#include "delta/file_set_internal.h"

namespace fleuve::delta {

/// One column of a batch, or of a struct in it; none where the checkpoint does not have it.
class ColumnView {
 public:
  ColumnView() = default;
  /// \param offset  of the parent.
  ColumnView(const ArrowArray* array, std::int64_t offset) : array_(array), offset_(array->offset + offset) {}

  bool present() const { return array_ != nullptr; }
  bool IsNull(std::int64_t row) const {
    if (array_ == nullptr) {
      return true;
    }
    const auto* valid = static_cast<const std::uint8_t*>(array_->buffers[0]);
    const std::int64_t at = offset_ + row;
    return valid != nullptr && (valid[at >> 3] >> (at & 7) & 1) == 0;
  }
  std::int64_t Long(std::int64_t row) const {
    return static_cast<const std::int64_t*>(array_->buffers[1])[offset_ + row];
  }
  bool Boolean(std::int64_t row) const {
    const std::int64_t at = offset_ + row;
    return (static_cast<const std::uint8_t*>(array_->buffers[1])[at >> 3] >> (at & 7) & 1) != 0;
  }
  std::string_view Text(std::int64_t row) const {
    const auto* ends = static_cast<const std::int32_t*>(array_->buffers[1]) + offset_ + row;
    return {static_cast<const char*>(array_->buffers[2]) + ends[0], static_cast<std::size_t>(ends[1] - ends[0])};
  }
  /// Of a list or map: where the row's entries begin and end in the child.
  std::pair<std::int64_t, std::int64_t> Entries(std::int64_t row) const {
    const auto* ends = static_cast<const std::int32_t*>(array_->buffers[1]) + offset_ + row;
    return {ends[0], ends[1]};
  }
  /// A field of a struct.
  ColumnView Child(std::size_t i) const { return {array_->children[i], offset_}; }
  /// The entries of a list or map, which have offsets of their own.
  ColumnView Items() const { return {array_->children[0], 0}; }

 private:
  const ArrowArray* array_ = nullptr;
  std::int64_t offset_ = 0;
};

class AddColumns {
 public:
  AddColumns(const columnar::RecordBatch& batch, const types::Schema& schema);
  /// True where the row is an added file of which nothing rare is said.
  bool IsPlain(std::int64_t row) const;
  void AddTo(std::int64_t row, FileSegment::Builder* files) const;

 private:
  ColumnView add_;
  ColumnView path_, partition_values_, size_, modification_time_, data_change_, stats_;
  ColumnView tags_, deletion_vector_, base_row_id_, default_row_commit_version_, clustering_provider_;
};

}  // namespace fleuve::delta
