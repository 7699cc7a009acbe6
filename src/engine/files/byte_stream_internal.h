#pragma once

/// \file
/// Bytes of a file from front to back, decompressed by its name's suffix as Hadoop does, and its lines.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fleuve::engine {

/// Threads: one at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Fills `buffer` with up to `size` bytes; 0 at the end. kCorrupt where compressed data is broken.
  virtual Result<std::size_t> Read(char* buffer, std::size_t size) = 0;
};

/// True for names that end in .gz, .bz2, .deflate (and .zst, .snappy, .lz4, which `OpenFile` refuses by name).
bool IsCompressedName(std::string_view path);

/// Opens a local file. \param offset  where to begin; must be 0 for compressed names.
/// \param encoding  name of a charset; empty or UTF-8 = bytes as they are; ISO-8859-1, US-ASCII, UTF-16[LE|BE],
/// UTF-32[LE|BE] are turned into UTF-8; anything else is kUnsupported.
/// kNotFound, kPermissionDenied, kTransient.
Result<std::unique_ptr<ByteStream>> OpenFile(const std::string& path, std::int64_t offset,
                                             const std::string& encoding = {});

/// The whole file in memory.
Result<std::string> ReadWholeFile(const std::string& path, const std::string& encoding = {});

/// FAILED_READ_FILE.* of a file that could not be read.
Error FailedReadFile(const std::string& uri, const Error& cause);

/// Lines of the part [begin, end) of a file: a line belongs to the part in which it begins; the first line of a part
/// that does not start at 0 belongs to the part before. Memory: the longest line and 1 MB. Threads: one at a time.
class LineReader {
 public:
  /// \param separator  empty: \n, \r\n and \r end a line.
  LineReader(std::unique_ptr<ByteStream> stream, std::int64_t begin, std::int64_t end, std::string separator);

  /// The next line without its separator; false at the end. The text lives until the next call, and as long as the
  /// `block` that was current after this one.
  Result<bool> Next(std::string_view* line);
  /// What holds the last line.
  const std::shared_ptr<char[]>& block() const { return block_; }
  /// The separator that ended the last line; empty at the end of the file.
  std::string_view terminator() const { return terminator_; }

 private:
  Result<bool> Fill();
  Result<bool> NextRaw(std::string_view* line);

  std::unique_ptr<ByteStream> stream_;
  const std::string separator_;
  const std::int64_t end_;
  /// File position of block_[position_].
  std::int64_t offset_;
  bool skip_first_;
  bool at_end_ = false;
  std::shared_ptr<char[]> block_;
  std::size_t capacity_;
  std::size_t position_ = 0;
  std::size_t filled_ = 0;
  std::string_view terminator_;
};

}  // namespace fleuve::engine
