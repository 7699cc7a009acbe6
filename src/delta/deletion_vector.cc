#include "delta/deletion_vector.h"

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <roaring/roaring.hh>
#include <stdexcept>
#include <unordered_map>

#include "base/bytes.h"
#include "delta/deletion_vector_internal.h"
#include "delta/table_source.h"

namespace fleuve::delta {
namespace {

constexpr std::string_view kZ85 =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

std::uint32_t BigEndian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

std::uint32_t LittleEndian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

Error Corrupt(std::string condition, std::string message) {
  return Error(ErrorKind::kCorrupt, std::move(condition), std::move(message));
}

/// \param count  how many rows the vector shall have: what comes beyond them is not looked at.
Result<std::shared_ptr<const RowSet>> Decode(std::string_view bytes, std::int64_t count, const std::string& where) {
  if (bytes.size() < 12 || LittleEndian(bytes) != kVectorMagic) {
    return Corrupt("DELTA_DELETION_VECTOR_INVALID_ROW_INDEX",
                   "The deletion vector in " + where + " is not in the portable format.");
  }
  try {
    // The bitmap's own counts and orders are not to be trusted before they were gone through.
    std::vector<std::uint64_t> rows;
    rows.reserve(std::min(static_cast<std::size_t>(count), bytes.size() * 8));
    // Roaring64Map::readSafe reads beyond the end, so its frame is read here: how many bitmaps, then each behind the
    // upper halves of its rows.
    std::string_view rest = bytes.substr(4);
    const auto take = [&rest](std::size_t size) {
      if (rest.size() < size) {
        throw std::runtime_error("ran out of bytes");
      }
      const std::string_view taken = rest.substr(0, size);
      rest.remove_prefix(size);
      return taken;
    };
    const std::string_view size = take(8);
    const std::uint64_t bitmaps = std::uint64_t{LittleEndian(size.substr(4))} << 32 | LittleEndian(size);
    for (std::uint64_t i = 0; i < bitmaps; ++i) {
      const std::uint64_t upper = std::uint64_t{LittleEndian(take(4))} << 32;
      const Roaring bitmap = Roaring::readSafe(rest.data(), rest.size());
      take(bitmap.getSizeInBytes());
      const auto end = bitmap.end();
      for (auto lower = bitmap.begin(); lower != end; ++lower) {
        const std::uint64_t row = upper | *lower;
        if (static_cast<std::int64_t>(rows.size()) >= count || (!rows.empty() && row <= rows.back())) {
          return Corrupt("DELTA_DELETION_VECTOR_SIZE_MISMATCH",
                         "The deletion vector in " + where + " has more rows than the log says, or not in order.");
        }
        rows.push_back(row);
      }
    }
    return std::make_shared<const RowSet>(std::move(rows));
  } catch (const std::exception& e) {
    return Corrupt("DELTA_DELETION_VECTOR_SIZE_MISMATCH",
                   "The deletion vector in " + where + " cannot be read: " + e.what());
  }
}

/// Vectors that were read lately, by path and offset; at most this many row numbers in all.
class Cache {
 public:
  std::shared_ptr<const RowSet> Find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(key);
    if (at == entries_.end()) {
      return nullptr;
    }
    order_.splice(order_.begin(), order_, at->second.place);
    return at->second.rows;
  }
  void Put(const std::string& key, std::shared_ptr<const RowSet> rows) {
    const std::lock_guard lock(mutex_);
    if (entries_.contains(key)) {
      return;
    }
    size_ += rows->count() + 64;
    order_.push_front(key);
    entries_[key] = {std::move(rows), order_.begin()};
    while (size_ > kLimit && order_.size() > 1) {
      const auto oldest = entries_.find(order_.back());
      size_ -= oldest->second.rows->count() + 64;
      entries_.erase(oldest);
      order_.pop_back();
    }
  }

 private:
  static constexpr std::int64_t kLimit = 4 << 20;
  struct Entry {
    std::shared_ptr<const RowSet> rows;
    std::list<std::string>::iterator place;
  };
  std::mutex mutex_;
  std::list<std::string> order_;
  std::unordered_map<std::string, Entry> entries_;
  std::int64_t size_ = 0;
};

Cache& VectorCache() {
  static Cache cache;
  return cache;
}

}  // namespace

std::uint32_t VectorChecksum(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int k = 0; k < 8; ++k) {
        c = (c & 1) != 0 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
      }
      t[i] = c;
    }
    return t;
  }();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF] ^ (crc >> 8);
  }
  return crc ^ 0xFFFFFFFFU;
}

std::int64_t RowSet::Keep(std::int64_t start, std::int64_t count, std::uint32_t* kept) const {
  auto gone = std::lower_bound(rows_.begin(), rows_.end(), static_cast<std::uint64_t>(start));
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (gone != rows_.end() && *gone == static_cast<std::uint64_t>(start + i)) {
      ++gone;
      continue;
    }
    kept[n++] = static_cast<std::uint32_t>(i);
  }
  return n;
}

std::string Z85Encode(std::string_view bytes) {
  std::string padded(bytes);
  while (padded.size() % 4 != 0) {
    padded += '\0';
  }
  std::string out;
  for (std::size_t at = 0; at < padded.size(); at += 4) {
    std::uint32_t value = BigEndian(std::string_view(padded).substr(at, 4));
    std::array<char, 5> digits{};
    for (std::size_t i = 5; i-- > 0;) {
      digits[i] = kZ85[value % 85];
      value /= 85;
    }
    out.append(digits.data(), digits.size());
  }
  return out;
}

Result<std::string> Z85Decode(std::string_view text) {
  if (text.size() % 5 != 0) {
    return Corrupt("DELTA_DELETION_VECTOR_SIZE_MISMATCH", "An encoded deletion vector has a wrong length.");
  }
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 5) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t digit = kZ85.find(text[at + i]);
      if (digit == std::string_view::npos) {
        return Corrupt("DELTA_DELETION_VECTOR_SIZE_MISMATCH", "An encoded deletion vector has a wrong character.");
      }
      value = value * 85 + digit;
    }
    for (int shift = 24; shift >= 0; shift -= 8) {
      out += static_cast<char>(value >> shift & 0xFF);
    }
  }
  return out;
}

Result<std::string> DeletionVectorPath(const DeletionVectorDescriptor& descriptor, const storage::Location& table) {
  if (descriptor.storage_type == "p") {
    return AbsolutePath(table, descriptor.path_or_inline_dv);
  }
  if (descriptor.storage_type == "i") {
    return std::string();
  }
  if (descriptor.storage_type != "u" || descriptor.path_or_inline_dv.size() < 20) {
    return Corrupt("DELTA_DELETION_VECTOR_SIZE_MISMATCH",
                   "The deletion vector kind '" + descriptor.storage_type + "' is not known.");
  }
  const std::string& text = descriptor.path_or_inline_dv;
  const std::string prefix = text.substr(0, text.size() - 20);
  FLEUVE_ASSIGN(const std::string uuid, Z85Decode(std::string_view(text).substr(text.size() - 20)));
  std::string name = HexEncode(uuid);
  name = AsciiLower(name);
  for (const std::size_t at : {20, 16, 12, 8}) {
    name.insert(at, "-");
  }
  return table.path + "/" + (prefix.empty() ? "" : prefix + "/") + "deletion_vector_" + name + ".bin";
}

Result<std::shared_ptr<const RowSet>> LoadDeletionVector(const DeletionVectorDescriptor& descriptor,
                                                         const storage::Location& table) {
  if (descriptor.size_in_bytes <= 0 || descriptor.cardinality < 0 || descriptor.offset.value_or(0) < 0) {
    return Corrupt("DELTA_DELETION_VECTOR_SIZE_MISMATCH", "A deletion vector has a size or place below zero.");
  }
  std::shared_ptr<const RowSet> rows;
  if (descriptor.storage_type == "i") {
    FLEUVE_ASSIGN(const std::string bytes, Z85Decode(descriptor.path_or_inline_dv));
    if (static_cast<std::int64_t>(bytes.size()) < descriptor.size_in_bytes) {
      return Corrupt("DELTA_DELETION_VECTOR_SIZE_MISMATCH", "An inline deletion vector is cut off.");
    }
    FLEUVE_ASSIGN(rows, Decode(std::string_view(bytes).substr(0, static_cast<std::size_t>(descriptor.size_in_bytes)),
                               descriptor.cardinality, "the log"));
  } else {
    FLEUVE_ASSIGN(const std::string path, DeletionVectorPath(descriptor, table));
    const std::string key = path + "@" + std::to_string(descriptor.offset.value_or(0));
    rows = VectorCache().Find(key);
    if (!rows) {
      FLEUVE_ASSIGN(const std::string bytes, table.store->GetRange(path, descriptor.offset.value_or(0),
                                                                   std::int64_t{descriptor.size_in_bytes} + 8));
      if (static_cast<std::int64_t>(bytes.size()) < std::int64_t{descriptor.size_in_bytes} + 8 ||
          static_cast<std::int64_t>(BigEndian(bytes)) != descriptor.size_in_bytes) {
        return Corrupt("DELTA_DELETION_VECTOR_SIZE_MISMATCH", "The deletion vector in " + path + " has a wrong size.");
      }
      const std::string_view body =
          std::string_view(bytes).substr(4, static_cast<std::size_t>(descriptor.size_in_bytes));
      if (VectorChecksum(body) != BigEndian(std::string_view(bytes).substr(4 + body.size(), 4))) {
        return Corrupt("DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH",
                       "The deletion vector in " + path + " does not match its checksum.");
      }
      FLEUVE_ASSIGN(rows, Decode(body, descriptor.cardinality, path));
      VectorCache().Put(key, rows);
    }
  }
  if (rows->count() != descriptor.cardinality) {
    return Corrupt("DELTA_DELETION_VECTOR_SIZE_MISMATCH", "A deletion vector holds " + std::to_string(rows->count()) +
                                                              " rows instead of " +
                                                              std::to_string(descriptor.cardinality) + ".");
  }
  return rows;
}

}  // namespace fleuve::delta
