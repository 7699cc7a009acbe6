#include <algorithm>
#include <unordered_map>

#include "delta/file_set_internal.h"
#include "delta/table_source.h"

namespace fleuve::delta {

std::uint64_t FileSegment::Hash(std::string_view text) {
  std::uint64_t h = std::hash<std::string_view>{}(text);
  h ^= h >> 32;
  return h * 0x9E3779B97F4A7C15ULL >> 16;
}

AddFile FileSegment::Get(std::size_t row, bool with_stats) const {
  const Row& r = rows_[row];
  AddFile file;
  file.path = std::string(path(row));
  file.partition_values = partitions_[r.partition];
  file.size = r.size;
  file.modification_time = r.modification_time;
  file.data_change = r.data_change;
  if (with_stats) {
    file.stats.assign(r.text + r.path_length, r.stats_length);
  }
  if (r.extra != 0) {
    const Extra& e = extras_[r.extra - 1];
    file.tags = e.tags;
    file.deletion_vector = e.deletion_vector;
    file.base_row_id = e.base_row_id;
    file.default_row_commit_version = e.default_row_commit_version;
    file.clustering_provider = e.clustering_provider;
  }
  return file;
}

std::string FileSegment::VectorId(std::size_t row) const {
  const Row& r = rows_[row];
  if (r.extra == 0 || !extras_[r.extra - 1].deletion_vector) {
    return {};
  }
  return extras_[r.extra - 1].deletion_vector->UniqueId();
}

struct FileSegment::Builder::PartitionIndex {
  std::unordered_map<std::string, std::uint32_t> ids;
};

FileSegment::Builder::Builder() : segment_(std::make_shared<FileSegment>()), partitions_(new PartitionIndex) {}
FileSegment::Builder::~Builder() = default;

char* FileSegment::Builder::Room(std::size_t bytes) {
  // Small segments (one commit) stay small.
  constexpr std::size_t kFirst = 4096;
  constexpr std::size_t kMost = std::size_t{1} << 20;
  if (bytes > free_bytes_) {
    free_bytes_ = std::max(bytes, segment_->chunks_.empty() ? kFirst : kMost);
    segment_->chunks_.push_back(std::make_unique_for_overwrite<char[]>(free_bytes_));
    free_ = segment_->chunks_.back().get();
  }
  char* room = free_;
  free_ += bytes;
  free_bytes_ -= bytes;
  return room;
}

void FileSegment::Builder::Add(const AddFile& file) { Add(file, file.path, file.stats); }

void FileSegment::Builder::Add(const AddFile& file, std::string_view path, std::string_view stats) {
  path = CanonicalPath(path);
  Row row;
  char* text = Room(path.size() + stats.size());
  std::copy(path.begin(), path.end(), text);
  std::copy(stats.begin(), stats.end(), text + path.size());
  row.text = text;
  row.path_length = static_cast<std::uint32_t>(path.size());
  row.stats_length = static_cast<std::uint32_t>(stats.size());
  row.size = file.size;
  row.modification_time = file.modification_time;
  row.records = NumRecords(stats);
  if (row.records >= 0 && file.deletion_vector) {
    row.records -= file.deletion_vector->cardinality;
  }
  row.data_change = file.data_change;
  std::string key;
  for (const auto& [name, value] : file.partition_values) {
    key += name;
    key += '\0';
    key += value ? std::to_string(value->size()) + ":" + *value : "-";
  }
  const auto [at, inserted] =
      partitions_->ids.try_emplace(std::move(key), static_cast<std::uint32_t>(segment_->partitions_.size()));
  if (inserted) {
    segment_->partitions_.push_back(file.partition_values);
  }
  row.partition = at->second;
  if (file.tags || file.deletion_vector || file.base_row_id || file.default_row_commit_version ||
      file.clustering_provider) {
    segment_->extras_.push_back(
        {file.tags, file.deletion_vector, file.base_row_id, file.default_row_commit_version, file.clustering_provider});
    row.extra = static_cast<std::uint32_t>(segment_->extras_.size());
  }
  segment_->rows_.push_back(row);
}

std::shared_ptr<const FileSegment> FileSegment::Builder::Finish() {
  const std::size_t count = segment_->rows_.size();
  if (count > 8) {
    std::size_t slots = 16;
    while (slots < count * 2) {
      slots *= 2;
    }
    segment_->index_.assign(slots, 0);
    for (std::size_t row = 0; row < count; ++row) {
      std::size_t slot = Hash(segment_->path(row)) & (slots - 1);
      while (segment_->index_[slot] != 0) {
        slot = (slot + 1) & (slots - 1);
      }
      segment_->index_[slot] = static_cast<std::uint32_t>(row + 1);
    }
  }
  return std::move(segment_);
}

std::shared_ptr<const FileSet> FileSet::Empty() {
  static const auto empty = std::make_shared<const FileSet>();
  return empty;
}

std::shared_ptr<const FileSet> FileSet::FromSegment(std::shared_ptr<const FileSegment> segment) {
  auto set = std::make_shared<FileSet>();
  for (std::size_t row = 0; row < segment->size(); ++row) {
    ++set->count_;
    set->bytes_ += segment->bytes(row);
    if (segment->records(row) < 0) {
      ++set->unknown_records_;
    } else {
      set->records_ += segment->records(row);
    }
  }
  if (segment->size() > 0) {
    set->parts_.push_back({std::move(segment), nullptr, 0});
  }
  return set;
}

void FileSet::Remove(std::string_view path, const std::string& vector_id, std::vector<bool>& writable) {
  path = CanonicalPath(path);
  for (std::size_t p = parts_.size(); p-- > 0;) {
    Part& part = parts_[p];
    bool found = false;
    part.segment->FindPath(path, [&](std::size_t row) {
      if (!part.Active(row) || part.segment->VectorId(row) != vector_id) {
        return false;
      }
      if (!writable[p]) {
        part.removed = part.removed ? std::make_shared<std::vector<std::uint64_t>>(*part.removed)
                                    : std::make_shared<std::vector<std::uint64_t>>((part.segment->size() + 63) / 64, 0);
        writable[p] = true;
      }
      const_cast<std::vector<std::uint64_t>&>(*part.removed)[row >> 6] |= std::uint64_t{1} << (row & 63);
      ++part.removed_count;
      --count_;
      bytes_ -= part.segment->bytes(row);
      if (part.segment->records(row) < 0) {
        --unknown_records_;
      } else {
        records_ -= part.segment->records(row);
      }
      found = true;
      return true;
    });
    if (found) {
      return;
    }
  }
}

std::shared_ptr<const FileSet> FileSet::Apply(const std::vector<const RemoveFile*>& removed,
                                              const std::vector<const AddFile*>& added) const {
  auto next = std::make_shared<FileSet>(*this);
  std::vector<bool> writable(next->parts_.size(), false);
  for (const RemoveFile* file : removed) {
    next->Remove(file->path, file->deletion_vector ? file->deletion_vector->UniqueId() : std::string(), writable);
  }
  if (!added.empty()) {
    FileSegment::Builder builder;
    for (const AddFile* file : added) {
      next->Remove(file->path, file->deletion_vector ? file->deletion_vector->UniqueId() : std::string(), writable);
      builder.Add(*file);
      ++next->count_;
      next->bytes_ += file->size;
      std::int64_t records = NumRecords(*file);
      if (records < 0) {
        ++next->unknown_records_;
      } else {
        next->records_ += records - (file->deletion_vector ? file->deletion_vector->cardinality : 0);
      }
    }
    next->parts_.push_back({builder.Finish(), nullptr, 0});
  }
  next->Settle();
  return next;
}

void FileSet::Settle() {
  std::erase_if(parts_, [](const Part& part) { return part.active() == 0; });
  // A segment is folded into its older neighbour once it is no longer small beside it: each file is copied at most a
  // logarithmic number of times over its life. Segments with mostly removed rows are rewritten.
  const auto fold = [&](std::size_t from) {
    FileSegment::Builder builder;
    for (std::size_t p = from; p < parts_.size(); ++p) {
      for (std::size_t row = 0; row < parts_[p].segment->size(); ++row) {
        if (parts_[p].Active(row)) {
          builder.Add(parts_[p].segment->Get(row, true));
        }
      }
    }
    parts_.resize(from);
    parts_.push_back({builder.Finish(), nullptr, 0});
  };
  std::size_t from = parts_.size();
  std::size_t newer = 0;
  while (from > 0 && (from == parts_.size() || newer * 2 >= parts_[from - 1].active())) {
    newer += parts_[from - 1].active();
    --from;
  }
  if (from + 1 < parts_.size()) {
    fold(from);
  }
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    if (parts_[p].removed_count > 64 && parts_[p].removed_count > parts_[p].active()) {
      fold(p);
      break;
    }
  }
}

void FileSet::ForEach(const std::function<void(const AddFile&)>& visit, bool stats) const {
  for (const Part& part : parts_) {
    for (std::size_t row = 0; row < part.segment->size(); ++row) {
      if (part.Active(row)) {
        visit(part.segment->Get(row, stats));
      }
    }
  }
}

bool FileSet::Cursor::Next(AddFile* file) {
  for (; part_ < set_.parts_.size(); ++part_, row_ = 0) {
    const Part& part = set_.parts_[part_];
    for (; row_ < part.segment->size(); ++row_) {
      if (part.Active(row_)) {
        *file = part.segment->Get(row_++, true);
        return true;
      }
    }
  }
  return false;
}

std::optional<AddFile> FileSet::Find(std::string_view path) const {
  path = CanonicalPath(path);
  std::optional<AddFile> file;
  for (const Part& part : parts_) {
    part.segment->FindPath(path, [&](std::size_t row) {
      if (part.Active(row)) {
        file = part.segment->Get(row, true);
        return true;
      }
      return false;
    });
    if (file) {
      break;
    }
  }
  return file;
}

}  // namespace fleuve::delta
