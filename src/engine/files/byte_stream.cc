#include <bzlib.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "engine/files/byte_stream_internal.h"

namespace fleuve::engine {

namespace {

constexpr std::size_t kBlock = 1 << 18;

bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

Error FileError(const std::string& path, const std::string& what, int code) {
  const ErrorKind kind = code == ENOENT || code == ENOTDIR ? ErrorKind::kNotFound
                         : code == EACCES || code == EPERM ? ErrorKind::kPermissionDenied
                                                           : ErrorKind::kTransient;
  return Error(kind, "FAILED_READ_FILE.NO_HINT", what + " " + path + ": " + std::strerror(code));
}

class PlainStream final : public ByteStream {
 public:
  PlainStream(int fd, std::string path, std::int64_t offset) : fd_(fd), path_(std::move(path)), offset_(offset) {}
  ~PlainStream() override { ::close(fd_); }
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;

  Result<std::size_t> Read(char* buffer, std::size_t size) override {
    for (;;) {
      const ssize_t got = ::pread(fd_, buffer, size, offset_);
      if (got < 0) {
        if (errno == EINTR) {
          continue;
        }
        return FileError(path_, "cannot read", errno);
      }
      offset_ += got;
      return static_cast<std::size_t>(got);
    }
  }

 private:
  int fd_;
  std::string path_;
  std::int64_t offset_;
};

Error CorruptData(const std::string& path, const char* codec) {
  return Error(ErrorKind::kCorrupt, "FAILED_READ_FILE.NO_HINT", std::string("broken ") + codec + " data in " + path);
}

/// gzip (several members one after the other) and zlib.
class ZlibStream final : public ByteStream {
 public:
  ZlibStream(std::unique_ptr<ByteStream> source, std::string path)
      : source_(std::move(source)), path_(std::move(path)) {
    input_.resize(kBlock);
    std::memset(&z_, 0, sizeof(z_));
    FLEUVE_CHECK(inflateInit2(&z_, 15 + 32) == Z_OK);
  }
  ~ZlibStream() override { inflateEnd(&z_); }
  ZlibStream(const ZlibStream&) = delete;
  ZlibStream& operator=(const ZlibStream&) = delete;

  Result<std::size_t> Read(char* buffer, std::size_t size) override {
    z_.next_out = reinterpret_cast<Bytef*>(buffer);
    z_.avail_out = static_cast<uInt>(size);
    while (z_.avail_out == size) {
      if (z_.avail_in == 0 && !source_ended_) {
        FLEUVE_ASSIGN(const std::size_t got, source_->Read(input_.data(), input_.size()));
        source_ended_ = got == 0;
        z_.next_in = reinterpret_cast<Bytef*>(input_.data());
        z_.avail_in = static_cast<uInt>(got);
      }
      if (z_.avail_in == 0 && source_ended_) {
        if (in_member_) {
          return CorruptData(path_, "gzip");
        }
        return std::size_t{0};
      }
      if (!in_member_ && began_) {
        FLEUVE_CHECK(inflateReset2(&z_, 15 + 32) == Z_OK);
      }
      in_member_ = true;
      began_ = true;
      const int code = inflate(&z_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        in_member_ = false;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return CorruptData(path_, "gzip");
      }
    }
    return size - z_.avail_out;
  }

 private:
  std::unique_ptr<ByteStream> source_;
  std::string path_;
  std::vector<char> input_;
  z_stream z_;
  bool source_ended_ = false;
  bool in_member_ = false;
  bool began_ = false;
};

class Bzip2Stream final : public ByteStream {
 public:
  Bzip2Stream(std::unique_ptr<ByteStream> source, std::string path)
      : source_(std::move(source)), path_(std::move(path)) {
    input_.resize(kBlock);
    std::memset(&bz_, 0, sizeof(bz_));
    FLEUVE_CHECK(BZ2_bzDecompressInit(&bz_, 0, 0) == BZ_OK);
  }
  ~Bzip2Stream() override { BZ2_bzDecompressEnd(&bz_); }
  Bzip2Stream(const Bzip2Stream&) = delete;
  Bzip2Stream& operator=(const Bzip2Stream&) = delete;

  Result<std::size_t> Read(char* buffer, std::size_t size) override {
    bz_.next_out = buffer;
    bz_.avail_out = static_cast<unsigned>(size);
    while (bz_.avail_out == size) {
      if (bz_.avail_in == 0 && !source_ended_) {
        FLEUVE_ASSIGN(const std::size_t got, source_->Read(input_.data(), input_.size()));
        source_ended_ = got == 0;
        bz_.next_in = input_.data();
        bz_.avail_in = static_cast<unsigned>(got);
      }
      if (bz_.avail_in == 0 && source_ended_) {
        if (in_member_) {
          return CorruptData(path_, "bzip2");
        }
        return std::size_t{0};
      }
      if (!in_member_ && began_) {
        char* next_in = bz_.next_in;
        const unsigned available = bz_.avail_in;
        BZ2_bzDecompressEnd(&bz_);
        std::memset(&bz_, 0, sizeof(bz_));
        FLEUVE_CHECK(BZ2_bzDecompressInit(&bz_, 0, 0) == BZ_OK);
        bz_.next_in = next_in;
        bz_.avail_in = available;
        bz_.next_out = buffer;
        bz_.avail_out = static_cast<unsigned>(size);
      }
      in_member_ = true;
      began_ = true;
      const int code = BZ2_bzDecompress(&bz_);
      if (code == BZ_STREAM_END) {
        in_member_ = false;
      } else if (code != BZ_OK) {
        return CorruptData(path_, "bzip2");
      }
    }
    return size - bz_.avail_out;
  }

 private:
  std::unique_ptr<ByteStream> source_;
  std::string path_;
  std::vector<char> input_;
  bz_stream bz_;
  bool source_ended_ = false;
  bool in_member_ = false;
  bool began_ = false;
};

void AppendUtf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

/// Turns fixed- or two-byte charsets into UTF-8. Broken text becomes U+FFFD, as Java's readers do.
class TranscodingStream final : public ByteStream {
 public:
  enum class Charset { kLatin1, kAscii, kUtf16, kUtf32 };
  TranscodingStream(std::unique_ptr<ByteStream> source, Charset charset, bool big_endian, bool look_for_mark)
      : source_(std::move(source)), charset_(charset), big_endian_(big_endian), look_for_mark_(look_for_mark) {}

  Result<std::size_t> Read(char* buffer, std::size_t size) override {
    while (position_ == text_.size()) {
      text_.clear();
      position_ = 0;
      if (ended_) {
        return std::size_t{0};
      }
      const std::size_t kept = raw_.size();
      raw_.resize(kept + kBlock);
      FLEUVE_ASSIGN(const std::size_t got, source_->Read(raw_.data() + kept, kBlock));
      raw_.resize(kept + got);
      ended_ = got == 0;
      Convert();
    }
    const std::size_t count = std::min(size, text_.size() - position_);
    std::memcpy(buffer, text_.data() + position_, count);
    position_ += count;
    return count;
  }

 private:
  std::uint32_t Unit(std::size_t at, std::size_t width) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const auto byte = static_cast<unsigned char>(raw_[at + (big_endian_ ? i : width - 1 - i)]);
      value = (value << 8) | byte;
    }
    return value;
  }

  void Convert() {
    std::size_t at = 0;
    const std::size_t width = charset_ == Charset::kUtf16 ? 2 : charset_ == Charset::kUtf32 ? 4 : 1;
    while (at + width <= raw_.size()) {
      if (width == 1) {
        const auto byte = static_cast<unsigned char>(raw_[at++]);
        AppendUtf8(text_, charset_ == Charset::kAscii && byte > 0x7F ? 0xFFFD : byte);
        continue;
      }
      std::uint32_t unit = Unit(at, width);
      if (first_) {
        first_ = false;
        if (look_for_mark_ && width == 2 && unit == 0xFFFE) {
          big_endian_ = !big_endian_;
          at += width;
          continue;
        }
        if (look_for_mark_ && width == 4 && unit == 0xFFFE0000U) {
          big_endian_ = !big_endian_;
          at += width;
          continue;
        }
        if (unit == 0xFEFF) {
          at += width;
          continue;
        }
      }
      if (width == 2 && unit >= 0xD800 && unit < 0xDC00) {
        if (at + 4 > raw_.size() && !ended_) {
          break;
        }
        const std::uint32_t low = at + 4 <= raw_.size() ? Unit(at + 2, 2) : 0;
        if (low >= 0xDC00 && low < 0xE000) {
          unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
          at += 2;
        } else {
          unit = 0xFFFD;
        }
      } else if (unit > 0x10FFFF || (unit >= 0xD800 && unit < 0xE000)) {
        unit = 0xFFFD;
      }
      AppendUtf8(text_, unit);
      at += width;
    }
    if (ended_ && at < raw_.size()) {
      AppendUtf8(text_, 0xFFFD);
      at = raw_.size();
    }
    raw_.erase(0, at);
  }

  std::unique_ptr<ByteStream> source_;
  const Charset charset_;
  bool big_endian_;
  const bool look_for_mark_;
  bool first_ = true;
  bool ended_ = false;
  std::string raw_;
  std::string text_;
  std::size_t position_ = 0;
};

std::string Upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

}  // namespace

bool IsCompressedName(std::string_view path) {
  for (const char* suffix : {".gz", ".gzip", ".bz2", ".deflate", ".zst", ".zstd", ".snappy", ".lz4"}) {
    if (EndsWith(path, suffix)) {
      return true;
    }
  }
  return false;
}

Result<std::unique_ptr<ByteStream>> OpenFile(const std::string& path, std::int64_t offset,
                                             const std::string& encoding) {
  for (const char* suffix : {".snappy", ".lz4", ".zst", ".zstd"}) {
    if (EndsWith(path, suffix)) {
      return Error::Unsupported("text files compressed as " + std::string(suffix + 1) + " (" + path + ")");
    }
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return FileError(path, "cannot open", errno);
  }
  struct stat info{};
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(fd);
    return FileError(path, "cannot read", EISDIR);
  }
  std::unique_ptr<ByteStream> stream = std::make_unique<PlainStream>(fd, path, offset);
  if (EndsWith(path, ".gz") || EndsWith(path, ".gzip") || EndsWith(path, ".deflate")) {
    stream = std::make_unique<ZlibStream>(std::move(stream), path);
  } else if (EndsWith(path, ".bz2")) {
    stream = std::make_unique<Bzip2Stream>(std::move(stream), path);
  }
  using Charset = TranscodingStream::Charset;
  const std::string name = Upper(encoding);
  if (name.empty() || name == "UTF-8" || name == "UTF8") {
    return stream;
  }
  std::unique_ptr<ByteStream> converted;
  if (name == "ISO-8859-1" || name == "LATIN1" || name == "ISO8859_1" || name == "ISO-8859-15") {
    if (name == "ISO-8859-15") {
      return Error::Unsupported("encoding " + encoding);
    }
    converted = std::make_unique<TranscodingStream>(std::move(stream), Charset::kLatin1, true, false);
  } else if (name == "US-ASCII" || name == "ASCII") {
    converted = std::make_unique<TranscodingStream>(std::move(stream), Charset::kAscii, true, false);
  } else if (name == "UTF-16" || name == "UTF-16BE" || name == "UTF-16LE") {
    converted =
        std::make_unique<TranscodingStream>(std::move(stream), Charset::kUtf16, name != "UTF-16LE", name == "UTF-16");
  } else if (name == "UTF-32" || name == "UTF-32BE" || name == "UTF-32LE") {
    converted =
        std::make_unique<TranscodingStream>(std::move(stream), Charset::kUtf32, name != "UTF-32LE", name == "UTF-32");
  } else {
    return Error::Unsupported("encoding " + encoding);
  }
  return converted;
}

Result<std::string> ReadWholeFile(const std::string& path, const std::string& encoding) {
  FLEUVE_ASSIGN(auto stream, OpenFile(path, 0, encoding));
  std::string bytes;
  for (;;) {
    const std::size_t have = bytes.size();
    const std::size_t room = std::max(kBlock, have / 2);
    bytes.resize(have + room);
    FLEUVE_ASSIGN(const std::size_t got, stream->Read(bytes.data() + have, room));
    bytes.resize(have + got);
    if (got == 0) {
      return bytes;
    }
  }
}

Error FailedReadFile(const std::string& uri, const Error& cause) {
  if (cause.kind() == ErrorKind::kUnsupported || cause.kind() == ErrorKind::kCancelled) {
    return cause;
  }
  if (cause.kind() == ErrorKind::kNotFound) {
    return Error(ErrorKind::kNotFound, "FAILED_READ_FILE.FILE_NOT_EXIST",
                 "Encountered error while reading file " + uri +
                     ". File does not exist. It is possible the underlying files have been updated. You can explicitly "
                     "invalidate the cache in Spark by running 'REFRESH TABLE tableName' command in SQL or by "
                     "recreating the Dataset/DataFrame involved.")
        .With("path", uri);
  }
  return Error(cause.kind(), "FAILED_READ_FILE.NO_HINT",
               "Encountered error while reading file " + uri + ". " +
                   (cause.condition().starts_with("FAILED_READ_FILE") ? cause.message() : cause.ToString()))
      .With("path", uri)
      .CausedBy(cause);
}

LineReader::LineReader(std::unique_ptr<ByteStream> stream, std::int64_t begin, std::int64_t end, std::string separator)
    : stream_(std::move(stream)),
      separator_(std::move(separator)),
      end_(end),
      offset_(begin),
      skip_first_(begin > 0),
      block_(std::make_shared_for_overwrite<char[]>(kBlock)),
      capacity_(kBlock) {}

Result<bool> LineReader::Fill() {
  if (at_end_) {
    return false;
  }
  const std::size_t rest = filled_ - position_;
  const bool full = rest == capacity_;
  if (full || block_.use_count() > 1) {  // others still read what stands in it
    const std::size_t capacity = full ? capacity_ * 2 : capacity_;
    auto fresh = std::make_shared_for_overwrite<char[]>(capacity);
    std::memcpy(fresh.get(), block_.get() + position_, rest);
    block_ = std::move(fresh);
    capacity_ = capacity;
  } else if (position_ > 0) {
    std::memmove(block_.get(), block_.get() + position_, rest);
  }
  filled_ = rest;
  position_ = 0;
  FLEUVE_ASSIGN(const std::size_t got, stream_->Read(block_.get() + filled_, capacity_ - filled_));
  filled_ += got;
  at_end_ = got == 0;
  return got > 0;
}

Result<bool> LineReader::NextRaw(std::string_view* line) {
  std::size_t scanned = 0;
  for (;;) {
    const char* begin = block_.get() + position_;
    const std::size_t available = filled_ - position_;
    std::size_t length = std::string_view::npos;
    std::size_t ending = 0;
    if (separator_.empty()) {
      const char* from = begin + scanned;
      const std::size_t rest = available - scanned;
      const char* newline = rest == 0 ? nullptr : static_cast<const char*>(std::memchr(from, '\n', rest));
      const std::size_t until = newline == nullptr ? rest : static_cast<std::size_t>(newline - from);
      const char* carriage = until == 0 ? nullptr : static_cast<const char*>(std::memchr(from, '\r', until));
      if (carriage != nullptr) {
        const std::size_t at = static_cast<std::size_t>(carriage - begin);
        if (at + 1 < available) {
          length = at;
          ending = begin[at + 1] == '\n' ? 2 : 1;
        } else if (at_end_) {
          length = at;
          ending = 1;
        }
      } else if (newline != nullptr) {
        length = static_cast<std::size_t>(newline - begin);
        ending = 1;
      }
    } else {
      const std::size_t from = scanned >= separator_.size() ? scanned - separator_.size() + 1 : 0;
      const std::size_t at = std::string_view(begin, available).find(separator_, from);
      if (at != std::string_view::npos) {
        length = at;
        ending = separator_.size();
      }
    }
    if (length != std::string_view::npos) {
      *line = std::string_view(begin, length);
      terminator_ = std::string_view(begin + length, ending);
      position_ += length + ending;
      offset_ += static_cast<std::int64_t>(length + ending);
      return true;
    }
    if (at_end_) {
      if (available == 0) {
        return false;
      }
      *line = std::string_view(begin, available);
      terminator_ = {};
      position_ += available;
      offset_ += static_cast<std::int64_t>(available);
      return true;
    }
    // A lone \r at the end of what is there is looked at again.
    scanned = available > 0 && begin[available - 1] == '\r' ? available - 1 : available;
    FLEUVE_TRY(Fill());
  }
}

Result<bool> LineReader::Next(std::string_view* line) {
  if (skip_first_) {
    skip_first_ = false;
    std::string_view ignored;
    FLEUVE_ASSIGN(const bool more, NextRaw(&ignored));
    if (!more) {
      return false;
    }
  }
  if (end_ >= 0 && offset_ > end_) {
    return false;
  }
  return NextRaw(line);
}

}  // namespace fleuve::engine
