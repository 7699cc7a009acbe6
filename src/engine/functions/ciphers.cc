#include <openssl/evp.h>
#include <openssl/rand.h>

#include <limits>
#include <memory>

#include "base/bytes.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"

// AES as Spark lays its bytes out: the initialization vector, the text, and in GCM mode the tag.

namespace fleuve::engine {

namespace {

constexpr const char* kFunctions = "`aes_encrypt`/`aes_decrypt`";
constexpr std::size_t kBlock = 16;
constexpr std::size_t kTag = 16;

struct Mode {
  std::string_view name;
  std::string_view padding;  ///< beside DEFAULT
  std::size_t vector;        ///< bytes of the initialization vector
  const EVP_CIPHER* (*by_key[3])();
};
constexpr Mode kModes[] = {
    {"ECB", "PKCS", 0, {EVP_aes_128_ecb, EVP_aes_192_ecb, EVP_aes_256_ecb}},
    {"CBC", "PKCS", 16, {EVP_aes_128_cbc, EVP_aes_192_cbc, EVP_aes_256_cbc}},
    {"GCM", "NONE", 12, {EVP_aes_128_gcm, EVP_aes_192_gcm, EVP_aes_256_gcm}},
};
bool HasTag(const Mode& mode) { return mode.name == "GCM"; }

Error Invalid(const char* subclass, const std::string& parameter, const std::string& message) {
  return Error(ErrorKind::kInvalidArgument, std::string("INVALID_PARAMETER_VALUE.") + subclass,
               "The value of parameter(s) " + parameter + " in " + kFunctions + " is invalid: " + message)
      .With("parameter", parameter)
      .With("functionName", kFunctions)
      .Family(ErrorFamily::kRuntime);
}
Error CryptoError(const std::string& detail) {
  return Invalid("AES_CRYPTO_ERROR", "`expr`, `key`", "detail message: " + detail).With("detailMessage", detail);
}
/// What only some modes have.
Error ModeLacks(const char* subclass, const Mode& mode, const char* what) {
  const std::string name = "AES-" + std::string(mode.name);
  return Error(ErrorKind::kUnsupported, std::string("UNSUPPORTED_FEATURE.") + subclass,
               "The feature is not supported: `aes_encrypt` with " + name + " does not support " + what + ".")
      .With("mode", std::string(mode.name))
      .With("functionName", "`aes_encrypt`")
      .Family(ErrorFamily::kRuntime);
}

/// One cipher, used again for each row of a chunk.
class Aes {
 public:
  Aes() : context_(EVP_CIPHER_CTX_new()) {}

  Result<std::string> Encrypt(Str text, Str key, Str mode_name, Str padding, Str vector, Str associated) {
    FLEUVE_TRY(Choose(key, mode_name, padding));
    if (!vector.empty() && mode_->vector == 0) {
      return ModeLacks("AES_MODE_IV", *mode_, "initialization vectors (IVs)");
    }
    if (!vector.empty() && vector.size() != mode_->vector) {
      return Invalid("AES_IV_LENGTH", "`iv`",
                     "supports 16-byte CBC IVs and 12-byte GCM IVs, but got " + std::to_string(vector.size()) +
                         " bytes for " + std::string(mode_->name) + ".")
          .With("mode", std::string(mode_->name))
          .With("actualLength", std::to_string(vector.size()));
    }
    if (!associated.empty() && !HasTag(*mode_)) {
      return ModeLacks("AES_MODE_AAD", *mode_, "additional authenticate data (AAD)");
    }
    std::string out(mode_->vector, '\0');
    if (!vector.empty()) {
      out = vector;
    } else if (RAND_bytes(At(out, 0), static_cast<int>(out.size())) != 1) {
      return Error::Internal("no random bytes");
    }
    const std::size_t begin = out.size();
    out.resize(begin + text.size() + kBlock + kTag);
    FLEUVE_ASSIGN(std::size_t size, Run(true, text, key, out, out.data() + begin, associated));
    if (HasTag(*mode_)) {
      Check(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_GET_TAG, kTag, At(out, begin + size)));
      size += kTag;
    }
    out.resize(begin + size);
    return out;
  }

  Result<std::string> Decrypt(Str text, Str key, Str mode_name, Str padding, Str associated) {
    FLEUVE_TRY(Choose(key, mode_name, padding));
    if (text.size() < mode_->vector) {
      return CryptoError(HasTag(*mode_) ? "Invalid buffer arguments"
                                        : "IV buffer too short for given offset/length combination");
    }
    if (mode_->vector > 0 && !associated.empty() && !HasTag(*mode_)) {
      return ModeLacks("AES_MODE_AAD", *mode_, "additional authenticate data (AAD)");
    }
    const Str vector = text.substr(0, mode_->vector);
    Str body = text.substr(vector.size());
    Str tag;
    if (HasTag(*mode_)) {
      if (body.size() < kTag) {
        return CryptoError("Input data too short to contain an expected tag length of 16bytes");
      }
      tag = body.substr(body.size() - kTag);
      body.remove_suffix(kTag);
    } else if (body.empty()) {
      return std::string();
    } else if (body.size() % kBlock != 0) {
      return CryptoError("Input length must be multiple of 16 when decrypting with padded cipher");
    }
    std::string out(body.size() + kBlock, '\0');
    FLEUVE_ASSIGN(const std::size_t size, Run(false, body, key, vector, out.data(), associated, tag));
    out.resize(size);
    return out;
  }

 private:
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };

  static unsigned char* At(std::string& text, std::size_t at) {
    return reinterpret_cast<unsigned char*>(text.data() + at);
  }
  static const unsigned char* Bytes(Str text) { return reinterpret_cast<const unsigned char*>(text.data()); }
  static void Check(int done) {
    if (done != 1) {
      ThrowRowError(Error::Internal("a cipher failed"));
    }
  }

  Result<void> Choose(Str key, Str mode_name, Str padding) {
    if (key.size() != 16 && key.size() != 24 && key.size() != 32) {
      return Invalid(
                 "AES_KEY_LENGTH", "`key`",
                 "expects a binary value with 16, 24 or 32 bytes, but got " + std::to_string(key.size()) + " bytes.")
          .With("actualLength", std::to_string(key.size()));
    }
    for (const Mode& mode : kModes) {
      if (EqualsIgnoreAsciiCase(mode_name, mode.name) &&
          (EqualsIgnoreAsciiCase(padding, "DEFAULT") || EqualsIgnoreAsciiCase(padding, mode.padding))) {
        mode_ = &mode;
        cipher_ = mode.by_key[key.size() / 8 - 2]();
        return {};
      }
    }
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.AES_MODE",
                 "The feature is not supported: AES-" + std::string(mode_name) + " with the padding " +
                     std::string(padding) + " by the " + kFunctions + " function.")
        .With("mode", std::string(mode_name))
        .With("padding", std::string(padding))
        .With("functionName", kFunctions)
        .Family(ErrorFamily::kRuntime);
  }

  /// Bytes written at `out`, which has room for the text and a block.
  Result<std::size_t> Run(bool encrypt, Str text, Str key, Str vector, char* out, Str associated, Str tag = {}) {
    if (std::max(text.size(), associated.size()) > std::numeric_limits<int>::max() - kBlock - kTag) {
      return CryptoError("the input is longer than 2147483615 bytes");
    }
    auto* to = reinterpret_cast<unsigned char*>(out);
    int size = 0;
    int rest = 0;
    Check(EVP_CipherInit_ex(context_.get(), cipher_, nullptr, Bytes(key), Bytes(vector), encrypt ? 1 : 0));
    if (!associated.empty()) {
      Check(EVP_CipherUpdate(context_.get(), nullptr, &size, Bytes(associated), static_cast<int>(associated.size())));
    }
    size = 0;
    if (!text.empty()) {
      Check(EVP_CipherUpdate(context_.get(), to, &size, Bytes(text), static_cast<int>(text.size())));
    }
    if (!tag.empty()) {
      // The library takes the tag as a place to write to, too.
      std::string copy(tag);
      Check(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_SET_TAG, kTag, copy.data()));
    }
    if (EVP_CipherFinal_ex(context_.get(), to + size, &rest) != 1) {
      return CryptoError(tag.empty() ? "Given final block not properly padded. Such issues can arise if a bad key is "
                                       "used during decryption."
                                     : "Tag mismatch!");
    }
    return static_cast<std::size_t>(size + rest);
  }

  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
  const Mode* mode_ = nullptr;
  const EVP_CIPHER* cipher_ = nullptr;
};

/// `Args`: text, key, mode, padding and what the direction has beside.
template <typename... Args, typename Call>
Kernel AesRows(bool is_try, Call call) {
  return [is_try, call](duckdb::DataChunk& args, duckdb::Vector& result) {
    Aes aes;
    const auto row = [&](Args... values) -> std::optional<std::string> {
      auto done = call(aes, values...);
      if (done.ok()) {
        return *std::move(done);
      }
      if (!is_try) {
        ThrowRowError(std::move(done).error());
      }
      return std::nullopt;
    };
    RunRows<Str, Args...>(row, args, result, std::index_sequence_for<Args...>{});
  };
}

Result<Kernel> MakeEncrypt(const ScalarSite&) {
  return AesRows<Str, Str, Str, Str, Str, Str>(
      false, [](Aes& aes, Str text, Str key, Str mode, Str padding, Str vector, Str associated) {
        return aes.Encrypt(text, key, mode, padding, vector, associated);
      });
}
Result<Kernel> MakeDecrypt(const ScalarSite& site) {
  return AesRows<Str, Str, Str, Str, Str>(ModeOf(site.expr) == plan::CastMode::kTry,
                                          [](Aes& aes, Str text, Str key, Str mode, Str padding, Str associated) {
                                            return aes.Decrypt(text, key, mode, padding, associated);
                                          });
}

}  // namespace

const ScalarTable& CipherKernels() {
  static const ScalarTable table = {
      {"spark_aes_encrypt", Nulls::kPropagate, MakeEncrypt},
      {"spark_aes_decrypt", Nulls::kPropagate, MakeDecrypt},
      {"spark_aes_decrypt_try", Nulls::kPropagate, MakeDecrypt},
  };
  return table;
}

}  // namespace fleuve::engine
