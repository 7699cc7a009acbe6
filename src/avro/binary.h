#pragma once

/// \file
/// Avro's binary encoding of single values.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace fleuve::avro {

/// Bytes read from front to back. A read beyond the end, or of a broken number, gives zero and sets `failed`, which
/// stays.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  bool at_end() const { return at_ >= bytes_.size(); }
  std::size_t position() const { return at_; }
  /// Back to (or on to) a position that `position` gave.
  void Seek(std::size_t position) { at_ = position; }
  void Fail() { failed_ = true; }

  /// At most five bytes, of which the last may say more than 32 bits: those are dropped, as Java does.
  std::int32_t Int() {
    const auto raw = static_cast<std::uint32_t>(Varint(5));
    return static_cast<std::int32_t>(raw >> 1) ^ -static_cast<std::int32_t>(raw & 1);
  }
  std::int64_t Long() {
    const std::uint64_t raw = Varint(10);
    return static_cast<std::int64_t>(raw >> 1) ^ -static_cast<std::int64_t>(raw & 1);
  }
  bool Boolean() {
    const std::string_view byte = Take(1);
    return !byte.empty() && byte[0] == 1;
  }
  /// A float or a double.
  template <typename T>
  T Number() {
    T value = 0;
    const std::string_view raw = Take(sizeof(T));
    if (!raw.empty()) {
      std::memcpy(&value, raw.data(), sizeof(T));
    }
    return value;
  }
  std::string_view Take(std::int64_t size) {
    if (size < 0 || static_cast<std::uint64_t>(size) > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    const std::string_view out = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return out;
  }
  /// Bytes or text with their length in front.
  std::string_view Bytes() { return Take(Long()); }

  /// How many items the next block of an array or map has; 0 ends it. Only items that take no bytes (nulls) can be more
  /// than the bytes that are left. Of these a few bytes could promise without end: so many are read from one reader.
  std::int64_t BlockCount() {
    std::int64_t count = Long();
    if (count < 0) {
      Long();  // the block's size in bytes
      count = count == std::numeric_limits<std::int64_t>::min() ? std::numeric_limits<std::int64_t>::max() : -count;
    }
    const auto left = static_cast<std::int64_t>(bytes_.size() - at_);
    if (count > left) {
      failed_ = failed_ || count - left > empty_items_left_;
      empty_items_left_ -= failed_ ? 0 : count - left;
    }
    return failed_ ? 0 : count;
  }

 private:
  std::uint64_t Varint(int most) {
    std::uint64_t value = 0;
    for (int i = 0; i < most; ++i) {
      if (at_ >= bytes_.size()) {
        failed_ = true;
        return 0;
      }
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << (7 * i);
      if ((byte & 0x80) == 0) {
        return value;
      }
    }
    failed_ = true;
    return 0;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
  std::int64_t empty_items_left_ = 1 << 20;
};

inline void AppendLong(std::string& out, std::int64_t value) {
  auto raw = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  while (raw >= 0x80) {
    out.push_back(static_cast<char>(raw | 0x80));
    raw >>= 7;
  }
  out.push_back(static_cast<char>(raw));
}
inline void AppendBytes(std::string& out, std::string_view bytes) {
  AppendLong(out, static_cast<std::int64_t>(bytes.size()));
  out.append(bytes);
}
/// A float or a double.
template <typename T>
void AppendNumber(std::string& out, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out.append(raw, sizeof(T));
}

}  // namespace fleuve::avro
