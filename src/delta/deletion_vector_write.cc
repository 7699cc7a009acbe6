#include <memory>
#include <roaring/roaring64map.hh>

#include "base/bytes.h"
#include "base/ids.h"
#include "delta/deletion_vector.h"
#include "delta/deletion_vector_internal.h"

namespace fleuve::delta {
namespace {

void AppendBigEndian(std::string* out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    *out += static_cast<char>(value >> shift & 0xFF);
  }
}

void AppendLittleEndian(std::string* out, std::uint32_t value) {
  for (int shift = 0; shift <= 24; shift += 8) {
    *out += static_cast<char>(value >> shift & 0xFF);
  }
}

/// The portable form: magic number, then a 64-bit Roaring bitmap.
std::string Encode(const std::vector<std::uint64_t>& rows) {
  Roaring64Map map;
  map.addMany(rows.size(), rows.data());
  map.runOptimize();
  // The library writes integers where they come: the map must begin at an aligned address.
  const std::size_t size = map.getSizeInBytes();
  const auto bytes = std::make_unique<char[]>(size);
  map.write(bytes.get());
  std::string out;
  AppendLittleEndian(&out, kVectorMagic);
  out.append(bytes.get(), size);
  return out;
}

/// The 16 bytes that a UUID's text says.
std::string UuidBytes(const std::string& uuid) {
  std::string out;
  int digits = 0;
  int value = 0;
  for (const char c : uuid) {
    if (c == '-') {
      continue;
    }
    value = value * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    if (++digits % 2 == 0) {
      out += static_cast<char>(value);
      value = 0;
    }
  }
  return out;
}

}  // namespace

Result<WrittenDeletionVectors> WriteDeletionVectors(const std::vector<std::vector<std::uint64_t>>& vectors,
                                                    const storage::Location& table) {
  WrittenDeletionVectors written;
  const std::string uuid = NewUuid();
  const std::string name = Z85Encode(UuidBytes(uuid));
  std::string bytes(1, '\1');
  for (const std::vector<std::uint64_t>& rows : vectors) {
    const std::string body = Encode(rows);
    DeletionVectorDescriptor descriptor;
    descriptor.storage_type = "u";
    descriptor.path_or_inline_dv = name;
    descriptor.offset = static_cast<std::int32_t>(bytes.size());
    descriptor.size_in_bytes = static_cast<std::int32_t>(body.size());
    descriptor.cardinality = static_cast<std::int64_t>(rows.size());
    AppendBigEndian(&bytes, static_cast<std::uint32_t>(body.size()));
    bytes += body;
    AppendBigEndian(&bytes, VectorChecksum(body));
    if (bytes.size() > (std::size_t{1} << 31) - 1) {
      return Error::Unsupported("deletion vectors of more than 2 GB in one commit");
    }
    written.descriptors.push_back(std::move(descriptor));
  }
  written.file = table.path + "/deletion_vector_" + uuid + ".bin";
  FLEUVE_TRY(table.store->Put(written.file, bytes, storage::PutMode::kIfAbsent));
  return written;
}

}  // namespace fleuve::delta
