#pragma once

/// \file
/// Many byte strings in one buffer: keys and values on their way to and from a store.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fleuve::state {

/// An appendable list of byte strings. Views stay valid until the next change. Threads: as a vector.
class ByteRows {
 public:
  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  std::size_t byte_count() const { return bytes_.size(); }
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  void Add(std::string_view row) {
    bytes_.append(row);
    ends_.push_back(bytes_.size());
  }
  void Reserve(std::size_t rows, std::size_t bytes) {
    ends_.reserve(rows);
    bytes_.reserve(bytes);
  }
  void Clear() {
    bytes_.clear();
    ends_.clear();
  }

  /// The buffer, to write the next row's bytes at its end; `EndRow` makes a row of what was added since the last one.
  std::string& bytes() { return bytes_; }
  void EndRow() { ends_.push_back(bytes_.size()); }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

}  // namespace fleuve::state
