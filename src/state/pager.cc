#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

#include "state/changelog_internal.h"
#include "state/pager_internal.h"
#include "state/row_table_internal.h"

namespace fleuve::state {

namespace {

constexpr std::int64_t kPageBytes = 4096;
/// Beyond the limit, so much of it is made free at once.
constexpr std::int64_t kFreedShare = 16;
/// So much of it segments may take in any case.
constexpr std::int64_t kLeastShare = 8;

Error IoError(const std::string& what) {
  const int code = errno;
  const bool is_full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  return Error(is_full ? ErrorKind::kResourceExhausted : ErrorKind::kTransient, "FLEUVE_IO_ERROR",
               what + " the file that holds state beyond memory failed: " + std::strerror(code) +
                   ". It lies in the scratch folder of the server.");
}

std::uint64_t CheckOf(const TwoPieces& pieces) {
  return HashBytes({pieces.first, pieces.first_size}) * 31 + HashBytes({pieces.second, pieces.second_size});
}

/// Places have one of a few sizes, so that one that was given back finds another segment.
std::uint32_t PagesFor(std::size_t bytes) {
  const auto pages = static_cast<std::uint32_t>((bytes + kPageBytes - 1) / kPageBytes);
  const std::uint32_t step = std::max(1U, std::bit_floor(pages) / 4);
  return (pages + step - 1) / step * step;
}

/// All bytes of both pieces at `at`, by preadv or pwritev.
template <typename Call>
bool Transfer(const TwoPieces& pieces, std::int64_t at, const Call& call) {
  iovec parts[2] = {{pieces.first, pieces.first_size}, {pieces.second, pieces.second_size}};
  int first = 0;
  while (first < 2) {
    if (parts[first].iov_len == 0) {
      ++first;
      continue;
    }
    const ssize_t moved = call(parts + first, 2 - first, at);
    if (moved < 0 && errno == EINTR) {
      continue;
    }
    if (moved <= 0) {
      errno = moved == 0 ? EIO : errno;
      return false;
    }
    at += moved;
    auto left = static_cast<std::size_t>(moved);
    for (int i = first; i < 2 && left > 0; ++i) {
      const std::size_t part = std::min(left, parts[i].iov_len);
      parts[i].iov_base = static_cast<char*>(parts[i].iov_base) + part;
      parts[i].iov_len -= part;
      left -= part;
    }
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<Pager>> Pager::Make(const std::string& folder, std::int64_t limit_bytes) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::string name = folder + "/state-XXXXXX";
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) {
    return IoError("Making");
  }
  ::unlink(name.c_str());
  return std::unique_ptr<Pager>(new Pager(file, limit_bytes));
}

Pager::~Pager() { ::close(file_); }

void Pager::Settle() {
  std::int64_t total = 0;
  std::int64_t in_segments = 0;
  for (const RowTable* table : tables_) {
    total += table->memory_bytes();
    in_segments += table->resident_bytes();
  }
  const std::int64_t most = std::max(limit_bytes_ - (total - in_segments), limit_bytes_ / kLeastShare);
  if (in_segments <= most || error_) {
    return;
  }
  std::int64_t wanted = in_segments - most + most / kFreedShare;
  // A second round, as the first one may only have found segments that were used of late.
  for (std::size_t i = 0; i < 2 * tables_.size() && wanted > 0; ++i) {
    wanted -= tables_[next_table_]->SpillSome(wanted);
    if (wanted > 0) {
      next_table_ = (next_table_ + 1) % tables_.size();
    }
  }
}

bool Pager::Write(const TwoPieces& pieces, Extent* extent) {
  const std::uint32_t pages = PagesFor(pieces.first_size + pieces.second_size);
  if (extent->pages < pages || extent->pages > pages + pages / 2 + 2) {
    Free(extent);
    auto& places = free_[pages];
    if (places.empty()) {
      extent->first_page = page_count_;
      page_count_ += pages;
    } else {
      extent->first_page = places.back();
      places.pop_back();
    }
    extent->pages = pages;
  }
  if (!Transfer(pieces, extent->first_page * kPageBytes, [this](const iovec* parts, int count, std::int64_t at) {
        return ::pwritev(file_, parts, count, at);
      })) {
    error_ = IoError("Writing");
    return false;
  }
  extent->check = CheckOf(pieces);
  return true;
}

bool Pager::Read(const Extent& extent, const TwoPieces& pieces) {
  if (!Transfer(pieces, extent.first_page * kPageBytes,
                [this](const iovec* parts, int count, std::int64_t at) { return ::preadv(file_, parts, count, at); })) {
    error_ = IoError("Reading");
    return false;
  }
  if (CheckOf(pieces) != extent.check) {
    error_ =
        Error(ErrorKind::kCorrupt, "FLEUVE_IO_ERROR",
              "The file that holds state beyond memory, in the scratch folder of the server, gives other bytes than "
              "were written.");
    return false;
  }
  return true;
}

void Pager::Free(Extent* extent) noexcept {
  const std::uint32_t pages = std::exchange(extent->pages, 0);
  if (pages == 0) {
    return;
  }
  try {
    free_[pages].push_back(extent->first_page);
  } catch (const std::bad_alloc&) {
    // A place that is forgotten costs disk until the file is emptied; tables must be able to drop segments.
  }
}

void Pager::Clear() {
  free_.clear();
  page_count_ = 0;
  error_.reset();
  if (::ftruncate(file_, 0) != 0) {
    error_ = IoError("Emptying");
  }
}

}  // namespace fleuve::state
