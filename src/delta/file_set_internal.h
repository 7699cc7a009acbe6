#pragma once

/// \file
/// The active files of one version, columnar and shared between versions: immutable segments of growing size, each with
/// a bitmap of removed rows. A commit costs what it changes, and a logarithm of the table's size.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "delta/actions.h"

namespace fleuve::delta {

/// Files in the order in which they came. Built once.
class FileSegment {
 public:
  class Builder;

  std::size_t size() const { return rows_.size(); }
  AddFile Get(std::size_t row, bool with_stats) const;
  std::string_view path(std::size_t row) const { return std::string_view(rows_[row].text, rows_[row].path_length); }
  std::int64_t bytes(std::size_t row) const { return rows_[row].size; }
  std::int64_t records(std::size_t row) const { return rows_[row].records; }
  /// Calls `visit` with each row of this path until it returns true.
  template <typename Visit>
  void FindPath(std::string_view path, const Visit& visit) const {
    if (index_.empty()) {
      for (std::size_t row = 0; row < rows_.size(); ++row) {
        if (this->path(row) == path && visit(row)) {
          return;
        }
      }
      return;
    }
    const std::size_t mask = index_.size() - 1;
    for (std::size_t slot = Hash(path) & mask; index_[slot] != 0; slot = (slot + 1) & mask) {
      const std::size_t row = index_[slot] - 1;
      if (this->path(row) == path && visit(row)) {
        return;
      }
    }
  }
  /// Unique id of the row's deletion vector; empty where it has none.
  std::string VectorId(std::size_t row) const;

 private:
  friend class Builder;
  struct Row {
    const char* text = nullptr;  ///< path, then statistics; in a chunk of the segment
    std::uint32_t path_length = 0;
    std::uint32_t stats_length = 0;
    std::int64_t size = 0;
    std::int64_t modification_time = 0;
    std::int64_t records = -1;
    std::uint32_t partition = 0;
    std::uint32_t extra = 0;  ///< 0 = none, else index + 1
    bool data_change = true;
  };
  /// What few files have.
  struct Extra {
    std::optional<StringMap> tags;
    std::optional<DeletionVectorDescriptor> deletion_vector;
    std::optional<std::int64_t> base_row_id;
    std::optional<std::int64_t> default_row_commit_version;
    std::optional<std::string> clustering_provider;
  };
  static std::uint64_t Hash(std::string_view text);

  /// Texts of rows, in pieces that never move.
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::vector<Row> rows_;
  std::vector<PartitionValues> partitions_;
  std::vector<Extra> extras_;
  std::vector<std::uint32_t> index_;
};

class FileSegment::Builder {
 public:
  Builder();
  ~Builder();
  void Add(const AddFile& file);
  /// The same with the two long texts as views; those of `file` are not looked at.
  void Add(const AddFile& file, std::string_view path, std::string_view stats);
  std::size_t size() const { return segment_->rows_.size(); }
  std::shared_ptr<const FileSegment> Finish();

 private:
  char* Room(std::size_t bytes);
  struct PartitionIndex;
  std::shared_ptr<FileSegment> segment_;
  std::unique_ptr<PartitionIndex> partitions_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
};

/// Immutable. Threads: any.
class FileSet {
 public:
  static std::shared_ptr<const FileSet> Empty();
  /// The set after one commit: `removed` go, then `added` come (one of the same path and vector replaces the old).
  std::shared_ptr<const FileSet> Apply(const std::vector<const RemoveFile*>& removed,
                                       const std::vector<const AddFile*>& added) const;
  static std::shared_ptr<const FileSet> FromSegment(std::shared_ptr<const FileSegment> segment);

  std::int64_t count() const { return count_; }
  std::int64_t bytes() const { return bytes_; }
  /// -1 where a file does not say.
  std::int64_t records() const { return unknown_records_ > 0 ? -1 : records_; }
  void ForEach(const std::function<void(const AddFile&)>& visit, bool stats) const;
  std::optional<AddFile> Find(std::string_view path) const;

  /// Goes through the files one by one, without holding them all. The set outlives it.
  class Cursor {
   public:
    explicit Cursor(const FileSet& set) : set_(set) {}
    /// False at the end.
    bool Next(AddFile* file);

   private:
    const FileSet& set_;
    std::size_t part_ = 0;
    std::size_t row_ = 0;
  };

 private:
  struct Part {
    std::shared_ptr<const FileSegment> segment;
    /// Null: nothing removed.
    std::shared_ptr<const std::vector<std::uint64_t>> removed;
    std::size_t removed_count = 0;
    bool Active(std::size_t row) const { return !removed || ((*removed)[row >> 6] >> (row & 63) & 1) == 0; }
    std::size_t active() const { return segment->size() - removed_count; }
  };
  void Remove(std::string_view path, const std::string& vector_id, std::vector<bool>& writable);
  void Settle();

  std::vector<Part> parts_;
  std::int64_t count_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t records_ = 0;
  std::int64_t unknown_records_ = 0;
};

}  // namespace fleuve::delta
