// Parquet pages in Hadoop's framing of LZ4 (codec LZ4), which DuckDB neither reads nor writes.
//
// A page is a row of blocks: the size of the block's content, then pieces, each with its compressed size before it,
// until the content is complete; sizes are four bytes, the highest first. Some older writers put a bare LZ4 block under
// the same codec.

#include <algorithm>

#include "column_reader.hpp"
#include "column_writer.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/serializer/memory_stream.hpp"
#include "duckdb/storage/buffer_manager.hpp"
#include "engine/duckdb_symbols_internal.h"
#include "engine/raise_internal.h"
#include "lz4.hpp"
#include "parquet_reader.hpp"
#include "parquet_writer.hpp"

namespace fleuve::engine {
namespace {

using duckdb::data_ptr_t;
using duckdb::idx_t;

constexpr const char* kDecompress =
    "_ZN6duckdb12ColumnReader18DecompressInternalEN14duckdb_parquet16CompressionCodec4typeEPKhmPhm";
constexpr const char* kCompress = "_ZN6duckdb12ColumnWriter12CompressPageERNS_12MemoryStreamERmRPhRNS_13AllocatedDataE";

/// What Hadoop's writer takes into one block at most: its buffer of 256 KiB less what LZ4 may add.
constexpr idx_t kBlockBytes = 256 * 1024 - (256 * 1024 / 255 + 16);

std::uint32_t ReadSize(const unsigned char* at) {
  return (std::uint32_t{at[0]} << 24) | (std::uint32_t{at[1]} << 16) | (std::uint32_t{at[2]} << 8) | at[3];
}

void WriteSize(std::uint32_t size, data_ptr_t at) {
  at[0] = static_cast<unsigned char>(size >> 24);
  at[1] = static_cast<unsigned char>(size >> 16);
  at[2] = static_cast<unsigned char>(size >> 8);
  at[3] = static_cast<unsigned char>(size);
}

/// The bytes made of one LZ4 block; negative where it is none or does not fit.
int Expand(const unsigned char* from, idx_t size, data_ptr_t to, idx_t room) {
  return duckdb_lz4::LZ4_decompress_safe(reinterpret_cast<const char*>(from), reinterpret_cast<char*>(to),
                                         static_cast<int>(size), static_cast<int>(room));
}

/// False where the bytes are not in Hadoop's framing or do not fill `to`.
bool ExpandFramed(const unsigned char* from, idx_t size, data_ptr_t to, idx_t to_size) {
  idx_t done = 0;
  idx_t at = 0;
  while (at < size) {
    if (size - at < 4) {
      return false;
    }
    const idx_t content = ReadSize(from + at);
    at += 4;
    const idx_t end = done + content;
    if (end > to_size) {
      return false;
    }
    while (done < end) {
      if (size - at < 4) {
        return false;
      }
      const idx_t piece = ReadSize(from + at);
      at += 4;
      if (piece > size - at) {
        return false;
      }
      const int made = Expand(from + at, piece, to + done, end - done);
      if (made <= 0) {
        return false;
      }
      at += piece;
      done += static_cast<idx_t>(made);
    }
  }
  return done == to_size;
}

void ExpandHadoopLz4(const std::string& file, const unsigned char* from, idx_t size, data_ptr_t to, idx_t to_size) {
  if (!ExpandFramed(from, size, to, to_size) && Expand(from, size, to, to_size) != static_cast<int>(to_size)) {
    throw duckdb::InvalidInputException("Failed to read file \"%s\": LZ4 decompression failure", file);
  }
}

/// Room enough for `CompressHadoopLz4`.
idx_t HadoopLz4Bound(idx_t size) {
  const idx_t blocks = (size + kBlockBytes - 1) / kBlockBytes;
  return blocks * (8 + static_cast<idx_t>(duckdb_lz4::LZ4_compressBound(static_cast<int>(kBlockBytes))));
}

/// Gives the number of bytes written to `to`.
idx_t CompressHadoopLz4(const unsigned char* from, idx_t size, data_ptr_t to, idx_t room) {
  idx_t written = 0;
  for (idx_t at = 0; at < size; at += kBlockBytes) {
    const idx_t content = std::min(kBlockBytes, size - at);
    const int made = duckdb_lz4::LZ4_compress_default(reinterpret_cast<const char*>(from + at),
                                                      reinterpret_cast<char*>(to + written + 8),
                                                      static_cast<int>(content), static_cast<int>(room - written - 8));
    if (made <= 0) {
      RaiseError(Error::Internal("LZ4 does not take a page"));
    }
    WriteSize(static_cast<std::uint32_t>(content), to + written);
    WriteSize(static_cast<std::uint32_t>(made), to + written + 4);
    written += 8 + static_cast<idx_t>(made);
  }
  return written;
}

}  // namespace

void CheckParquetCodecs() {
  if (!ReachesUs(kDecompress) || !ReachesUs(kCompress)) {
    RaiseError(Error::Internal("DuckDB does not reach this program's Parquet codecs"));
  }
}

}  // namespace fleuve::engine

namespace duckdb {

void ColumnReader::DecompressInternal(CompressionCodec::type codec, const_data_ptr_t src, idx_t src_size,
                                      data_ptr_t dst, idx_t dst_size) {
  if (codec == CompressionCodec::LZ4) {
    fleuve::engine::ExpandHadoopLz4(Reader().GetFileName(), src, src_size, dst, dst_size);
    return;
  }
  using Decompress = void (*)(ColumnReader*, CompressionCodec::type, const_data_ptr_t, idx_t, data_ptr_t, idx_t);
  static const auto library =
      reinterpret_cast<Decompress>(fleuve::engine::LibraryFunction(fleuve::engine::kDecompress));
  library(this, codec, src, src_size, dst, dst_size);
}

void ColumnWriter::CompressPage(MemoryStream& temp_writer, size_t& compressed_size, data_ptr_t& compressed_data,
                                AllocatedData& compressed_buf) {
  if (writer.GetCodec() == CompressionCodec::LZ4) {
    const idx_t room = fleuve::engine::HadoopLz4Bound(temp_writer.GetPosition());
    compressed_buf = BufferAllocator::Get(writer.GetContext()).Allocate(room);
    compressed_size =
        fleuve::engine::CompressHadoopLz4(temp_writer.GetData(), temp_writer.GetPosition(), compressed_buf.get(), room);
    compressed_data = compressed_buf.get();
    return;
  }
  using Compress = void (*)(ColumnWriter*, MemoryStream&, size_t&, data_ptr_t&, AllocatedData&);
  static const auto library = reinterpret_cast<Compress>(fleuve::engine::LibraryFunction(fleuve::engine::kCompress));
  library(this, temp_writer, compressed_size, compressed_data, compressed_buf);
}

}  // namespace duckdb
