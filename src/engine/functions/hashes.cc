#include <openssl/evp.h>
#include <zlib.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

using types::DataType;
using types::TypeKind;

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// ---- Murmur3, 32 bits, as Spark mixes it ----

struct Murmur {
  using Word = std::int32_t;

  static std::uint32_t MixK(std::uint32_t k) { return std::rotl(k * 0xcc9e2d51U, 15) * 0x1b873593U; }
  static std::uint32_t MixH(std::uint32_t h, std::uint32_t k) { return std::rotl(h ^ k, 13) * 5 + 0xe6546b64U; }
  static Word Finish(std::uint32_t h, std::uint32_t length) {
    h ^= length;
    h ^= h >> 16;
    h *= 0x85ebca6bU;
    h ^= h >> 13;
    h *= 0xc2b2ae35U;
    h ^= h >> 16;
    return static_cast<Word>(h);
  }
  static Word Int(std::int32_t value, Word seed) {
    return Finish(MixH(static_cast<std::uint32_t>(seed), MixK(static_cast<std::uint32_t>(value))), 4);
  }
  static Word Long(std::int64_t value, Word seed) {
    auto bits = static_cast<std::uint64_t>(value);
    std::uint32_t h = MixH(static_cast<std::uint32_t>(seed), MixK(static_cast<std::uint32_t>(bits)));
    return Finish(MixH(h, MixK(static_cast<std::uint32_t>(bits >> 32))), 8);
  }
  static Word Bytes(Str text, Word seed) {
    auto h = static_cast<std::uint32_t>(seed);
    std::size_t aligned = text.size() - text.size() % 4;
    for (std::size_t i = 0; i < aligned; i += 4) {
      h = MixH(h, MixK(Load<std::uint32_t>(text.data() + i)));
    }
    // The rest byte by byte, sign-extended.
    for (std::size_t i = aligned; i < text.size(); ++i) {
      h = MixH(h, MixK(static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<signed char>(text[i])))));
    }
    return Finish(h, static_cast<std::uint32_t>(text.size()));
  }
};

// ---- xxHash64 ----

struct XxHash {
  using Word = std::int64_t;
  static constexpr std::uint64_t kP1 = 0x9E3779B185EBCA87ULL;
  static constexpr std::uint64_t kP2 = 0xC2B2AE3D27D4EB4FULL;
  static constexpr std::uint64_t kP3 = 0x165667B19E3779F9ULL;
  static constexpr std::uint64_t kP4 = 0x85EBCA77C2B2AE63ULL;
  static constexpr std::uint64_t kP5 = 0x27D4EB2F165667C5ULL;

  static Word Finish(std::uint64_t h) {
    h ^= h >> 33;
    h *= kP2;
    h ^= h >> 29;
    h *= kP3;
    h ^= h >> 32;
    return static_cast<Word>(h);
  }
  static Word Int(std::int32_t value, Word seed) {
    std::uint64_t h = static_cast<std::uint64_t>(seed) + kP5 + 4;
    h ^= static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)) * kP1;
    h = std::rotl(h, 23) * kP2 + kP3;
    return Finish(h);
  }
  static Word Long(std::int64_t value, Word seed) {
    std::uint64_t h = static_cast<std::uint64_t>(seed) + kP5 + 8;
    h ^= std::rotl(static_cast<std::uint64_t>(value) * kP2, 31) * kP1;
    h = std::rotl(h, 27) * kP1 + kP4;
    return Finish(h);
  }
  static Word Bytes(Str text, Word seed_word) {
    auto seed = static_cast<std::uint64_t>(seed_word);
    const char* at = text.data();
    const char* end = at + text.size();
    std::uint64_t h = 0;
    if (text.size() >= 32) {
      std::uint64_t v[4] = {seed + kP1 + kP2, seed + kP2, seed, seed - kP1};
      do {
        for (std::uint64_t& lane : v) {
          lane = std::rotl(lane + Load<std::uint64_t>(at) * kP2, 31) * kP1;
          at += 8;
        }
      } while (at <= end - 32);
      h = std::rotl(v[0], 1) + std::rotl(v[1], 7) + std::rotl(v[2], 12) + std::rotl(v[3], 18);
      for (std::uint64_t lane : v) {
        h ^= std::rotl(lane * kP2, 31) * kP1;
        h = h * kP1 + kP4;
      }
    } else {
      h = seed + kP5;
    }
    h += text.size();
    while (end - at >= 8) {
      h ^= std::rotl(Load<std::uint64_t>(at) * kP2, 31) * kP1;
      h = std::rotl(h, 27) * kP1 + kP4;
      at += 8;
    }
    if (end - at >= 4) {
      h ^= static_cast<std::uint64_t>(Load<std::uint32_t>(at)) * kP1;
      h = std::rotl(h, 23) * kP2 + kP3;
      at += 4;
    }
    for (; at < end; ++at) {
      h ^= static_cast<std::uint64_t>(static_cast<unsigned char>(*at)) * kP5;
      h = std::rotl(h, 11) * kP1;
    }
    return Finish(h);
  }
};

/// The bytes of a BigInteger: two's complement, big-endian, as few as possible.
std::string BigIntegerBytes(Int128 value) {
  std::string bytes;
  for (int shift = 120; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(static_cast<unsigned char>(value >> shift));
  }
  std::size_t start = 0;
  while (start + 1 < bytes.size()) {
    auto head = static_cast<signed char>(bytes[start]);
    auto next = static_cast<signed char>(bytes[start + 1]);
    if ((head == 0 && next >= 0) || (head == -1 && next < 0)) {
      ++start;
    } else {
      break;
    }
  }
  return bytes.substr(start);
}

template <typename H>
typename H::Word HashRow(const DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format, duckdb::idx_t row,
                         typename H::Word seed) {
  duckdb::idx_t index = format.unified.sel->get_index(row);
  if (!format.unified.validity.RowIsValid(index)) {
    return seed;
  }
  auto at = [&](auto zero) {
    using T = decltype(zero);
    return Physical<T>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format.unified)[index]);
  };
  switch (type.kind()) {
    case TypeKind::kVoid:
    case TypeKind::kTime:
      return seed;
    case TypeKind::kBoolean:
      return H::Int(at(bool{}) ? 1 : 0, seed);
    case TypeKind::kByte:
      return H::Int(at(std::int8_t{}), seed);
    case TypeKind::kShort:
      return H::Int(at(std::int16_t{}), seed);
    case TypeKind::kInt:
    case TypeKind::kDate:
    case TypeKind::kYearMonthInterval:
      return H::Int(at(std::int32_t{}), seed);
    case TypeKind::kLong:
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
    case TypeKind::kDayTimeInterval:
      return H::Long(at(std::int64_t{}), seed);
    case TypeKind::kFloat: {
      float value = at(float{});
      if (value == 0) {
        return H::Int(0, seed);
      }
      return H::Int(std::isnan(value) ? 0x7fc00000 : std::bit_cast<std::int32_t>(value), seed);
    }
    case TypeKind::kDouble: {
      double value = at(double{});
      if (value == 0) {
        return H::Long(0, seed);
      }
      return H::Long(std::isnan(value) ? 0x7ff8000000000000LL : std::bit_cast<std::int64_t>(value), seed);
    }
    case TypeKind::kDecimal: {
      Int128 value = WithDecimalCarrier(type.precision(), [&](auto zero) -> Int128 { return at(zero); });
      if (type.precision() <= 18) {
        return H::Long(static_cast<std::int64_t>(value), seed);
      }
      return H::Bytes(BigIntegerBytes(value), seed);
    }
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      return H::Bytes(at(Str{}), seed);
    case TypeKind::kCalendarInterval: {
      auto part = [&](std::size_t i, auto zero) {
        const auto& child = format.children[i];
        return duckdb::UnifiedVectorFormat::GetData<decltype(zero)>(child.unified)[child.unified.sel->get_index(index)];
      };
      typename H::Word hash = H::Long(part(2, std::int64_t{}), seed);
      hash = H::Int(part(1, std::int32_t{}), hash);
      return H::Int(part(0, std::int32_t{}), hash);
    }
    case TypeKind::kArray: {
      auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
      for (duckdb::idx_t i = 0; i < entry.length; ++i) {
        seed = HashRow<H>(type.element(), format.children[0], entry.offset + i, seed);
      }
      return seed;
    }
    case TypeKind::kMap: {
      auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
      const auto& pair = format.children[0];
      for (duckdb::idx_t i = 0; i < entry.length; ++i) {
        duckdb::idx_t at_pair = pair.unified.sel->get_index(entry.offset + i);
        seed = HashRow<H>(type.key(), pair.children[0], at_pair, seed);
        seed = HashRow<H>(type.value(), pair.children[1], at_pair, seed);
      }
      return seed;
    }
    case TypeKind::kStruct:
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        seed = HashRow<H>(type.fields()[i].type, format.children[i], index, seed);
      }
      return seed;
    case TypeKind::kVariant: {
      for (const auto& child : format.children) {
        duckdb::idx_t i = child.unified.sel->get_index(index);
        seed = H::Bytes(Physical<Str>::Read(duckdb::UnifiedVectorFormat::GetData<duckdb::string_t>(child.unified)[i]),
                        seed);
      }
      return seed;
    }
  }
  return seed;
}

template <typename H>
Result<Kernel> MakeHash(const ScalarSite& site) {
  std::vector<DataType> types;
  for (const plan::ExprPtr& child : site.expr.children) {
    types.push_back(child->type);
  }
  return Kernel([types](duckdb::DataChunk& args, duckdb::Vector& result) {
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<typename H::Word>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      out[row] = 42;
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      duckdb::RecursiveUnifiedVectorFormat format;
      duckdb::Vector::RecursiveToUnifiedFormat(args.data[i], args.size(), format);
      for (duckdb::idx_t row = 0; row < args.size(); ++row) {
        out[row] = HashRow<H>(types[i], format, row, out[row]);
      }
    }
  });
}

/// The hash of one value; NULL for NULL.
Result<Kernel> MakeHashOrNull(const ScalarSite& site) {
  FLEUVE_ASSIGN(Kernel hash, MakeHash<XxHash>(site));
  return Kernel([hash](duckdb::DataChunk& args, duckdb::Vector& result) {
    hash(args, result);
    duckdb::UnifiedVectorFormat format;
    args.data[0].ToUnifiedFormat(args.size(), format);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (!format.validity.RowIsValid(format.sel->get_index(row))) {
        duckdb::FlatVector::SetNull(result, row, true);
      }
    }
  });
}

// ---- Digests ----

std::string Digest(const EVP_MD* kind, Str text) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), bytes, &size, kind, nullptr) != 1) {
    ThrowRowError(Error::Internal("a digest failed"));
  }
  return AsciiLower(HexEncode(Str(reinterpret_cast<const char*>(bytes), size)));
}

Result<Kernel> MakeMd5(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) { return Digest(EVP_md5(), text); });
}
Result<Kernel> MakeSha1(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) { return Digest(EVP_sha1(), text); });
}
Result<Kernel> MakeSha2(const ScalarSite&) {
  return MapRows<Str, Str, std::int32_t>([](Str text, std::int32_t bits) -> std::optional<std::string> {
    switch (bits) {
      case 224:
        return Digest(EVP_sha224(), text);
      case 0:
      case 256:
        return Digest(EVP_sha256(), text);
      case 384:
        return Digest(EVP_sha384(), text);
      case 512:
        return Digest(EVP_sha512(), text);
      default:
        return std::nullopt;
    }
  });
}
Result<Kernel> MakeCrc32(const ScalarSite&) {
  return MapRows<std::int64_t, Str>([](Str text) {
    return static_cast<std::int64_t>(
        crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const unsigned char*>(text.data()), text.size()));
  });
}

}  // namespace

const ScalarTable& HashKernels() {
  static const ScalarTable table = {
      {"spark_hash", Nulls::kOwn, MakeHash<Murmur>},
      {"spark_xxhash64", Nulls::kOwn, MakeHash<XxHash>},
      {"spark_xxhash64_or_null", Nulls::kPropagate, MakeHashOrNull},
      {"spark_md5", Nulls::kPropagate, MakeMd5},
      {"spark_sha1", Nulls::kPropagate, MakeSha1},
      {"spark_sha2", Nulls::kPropagate, MakeSha2},
      {"spark_crc32", Nulls::kPropagate, MakeCrc32},
  };
  return table;
}

}  // namespace fleuve::engine
