#include "core/base/files/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <filesystem>

#include "absl/strings/ascii.h"
#include "core/base/check.h"
#include "core/base/files/file.h"
#include "core/base/parse/pem.h"
#include "core/base/text/hex_digit.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

constexpr size_t kMaxKeyFileBytes = 16 << 10;
constexpr size_t kMinSecretBytes = 32;
constexpr size_t kMaxSecretBytes = 128;
constexpr size_t kHmacBytes = 32;
constexpr size_t kEd25519Bytes = 64;

const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// False if `hex` is not an even number of hex digits.
bool FromHex(std::string_view hex, std::string* out) {
  if (hex.size() % 2 != 0) return false;
  auto digit = [&](size_t i) {
    return HexDigit(absl::ascii_tolower(static_cast<unsigned char>(hex[i])));
  };
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(i), low = digit(i + 1);
    if (high < 0 || low < 0) return false;
    *out += static_cast<char>(high << 4 | low);
  }
  return true;
}

bool IsPlainId(std::string_view id) {
  constexpr std::string_view kSigns =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  return !id.empty() && id.find_first_not_of(kSigns) == std::string_view::npos;
}

std::string Hmac(const std::string& secret, std::string_view bytes) {
  std::string out(kHmacBytes, '\0');
  unsigned length = 0;
  const uint8_t* made =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), Bytes(bytes), bytes.size(),
           reinterpret_cast<uint8_t*>(out.data()), &length);
  FUSION_CHECK(made != nullptr && length == kHmacBytes, "HMAC-SHA256 has 32 bytes");
  return out;
}

}  // namespace

struct SigningKey::Secret {
  ~Secret() { OPENSSL_cleanse(shared.data(), shared.size()); }
  std::string shared;        // of HMAC
  OpenSslPtr<EVP_PKEY> key;  // of Ed25519
};

std::string_view SignatureAlgorithmName(SignatureAlgorithm algorithm) {
  return algorithm == SignatureAlgorithm::kEd25519 ? "Ed25519" : "HMAC-SHA256";
}

absl::StatusOr<SigningKey> SigningKey::Parse(std::string id, std::string_view text) {
  SigningKey out;
  out.id_ = std::move(id);
  auto secret = std::make_shared<Secret>();
  text = StripSpace(text);
  if (FromHex(text, &secret->shared)) {
    const size_t bytes = secret->shared.size();
    if (bytes < kMinSecretBytes || bytes > kMaxSecretBytes) {
      return InvalidArgument("a shared key of ", bytes, " bytes; expected ", kMinSecretBytes, "..",
                             kMaxSecretBytes, ", as hex digits");
    }
    out.algorithm_ = SignatureAlgorithm::kHmacSha256;
    out.can_sign_ = true;
    out.secret_ = std::move(secret);
    return out;
  }
  secret->key = PemReader(text).PrivateKey();
  out.can_sign_ = secret->key != nullptr;
  if (!out.can_sign_) secret->key = PemReader(text).PublicKey();
  if (secret->key == nullptr) {
    return InvalidArgument(
        "no key; expected a private or public Ed25519 key in PEM form without a password, or "
        "hex digits");
  }
  if (EVP_PKEY_get_base_id(secret->key.get()) != EVP_PKEY_ED25519) {
    return InvalidArgument(
        "a key of another kind; expected Ed25519 (openssl genpkey -algorithm "
        "ed25519)");
  }
  out.secret_ = std::move(secret);
  return out;
}

absl::StatusOr<SigningKey> SigningKey::Read(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxKeyFileBytes);
  if (!text.ok()) return InvalidArgument(Message(text.status()));
  std::string id = std::filesystem::path(path).stem().string();
  if (!IsPlainId(id)) {
    return InvalidArgument(QuoteShort(path),
                           ": the key is called as its file, which has other signs than letters, "
                           "digits, '.', '-' and '_'");
  }
  absl::StatusOr<SigningKey> key = Parse(std::move(id), *text);
  OPENSSL_cleanse(text->data(), text->size());
  if (!key.ok()) return Annotate(key.status(), path);
  return key;
}

Signature SigningKey::Sign(std::string_view bytes) const {
  FUSION_CHECK(can_sign_, "the key can sign");
  Signature out{.key_id = id_, .algorithm = algorithm_, .value = {}};
  if (algorithm_ == SignatureAlgorithm::kHmacSha256) {
    out.value = Hmac(secret_->shared, bytes);
    return out;
  }
  out.value.resize(kEd25519Bytes);
  size_t length = out.value.size();
  OpenSslPtr<EVP_MD_CTX> context(EVP_MD_CTX_new());
  const bool made =
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, secret_->key.get()) == 1 &&
      EVP_DigestSign(context.get(), reinterpret_cast<uint8_t*>(out.value.data()), &length,
                     Bytes(bytes), bytes.size()) == 1;
  FUSION_CHECK(made && length == kEd25519Bytes, "Ed25519 signs any bytes");
  return out;
}

absl::Status SigningKey::Verify(std::string_view bytes, const Signature& signature) const {
  if (signature.algorithm != algorithm_) {
    return DataLoss("signed with ", SignatureAlgorithmName(signature.algorithm), ", the key ",
                    QuoteShort(id_), " is for ", SignatureAlgorithmName(algorithm_));
  }
  bool right = false;
  if (algorithm_ == SignatureAlgorithm::kHmacSha256) {
    const std::string expected = Hmac(secret_->shared, bytes);
    right = signature.value.size() == expected.size() &&
            CRYPTO_memcmp(signature.value.data(), expected.data(), expected.size()) == 0;
  } else {
    OpenSslPtr<EVP_MD_CTX> context(EVP_MD_CTX_new());
    right =
        EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, secret_->key.get()) == 1 &&
        EVP_DigestVerify(context.get(), Bytes(signature.value), signature.value.size(),
                         Bytes(bytes), bytes.size()) == 1;
  }
  if (right) return absl::OkStatus();
  return DataLoss("the signature is not that of the key ", QuoteShort(id_), " over these bytes");
}

absl::StatusOr<std::vector<SigningKey>> ReadKeys(const std::vector<std::string>& paths) {
  std::vector<SigningKey> out;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(SigningKey key, SigningKey::Read(path));
    for (const SigningKey& other : out) {
      if (other.id() != key.id()) continue;
      return InvalidArgument(path, ": an earlier key is called ", QuoteShort(key.id()), " too");
    }
    out.push_back(std::move(key));
  }
  return out;
}

absl::Status VerifyWithAny(const std::vector<SigningKey>& keys, std::string_view what,
                           std::string_view bytes, const Signature& signature) {
  for (const SigningKey& key : keys) {
    if (key.id() != signature.key_id) continue;
    absl::Status right = key.Verify(bytes, signature);
    return right.ok() ? right : Annotate(right, what);
  }
  return DataLoss(what, ": signed with the key ", QuoteShort(signature.key_id),
                  ", which is none of those that are trusted: ",
                  StrJoin(keys, ", ", [](const SigningKey& key) { return QuoteShort(key.id()); }));
}

}  // namespace fusion
