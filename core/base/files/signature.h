#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fusion {

enum class SignatureAlgorithm : uint8_t { kHmacSha256, kEd25519 };

/// "HMAC-SHA256", "Ed25519".
std::string_view SignatureAlgorithmName(SignatureAlgorithm algorithm);

/// A signature over some bytes, with the key and algorithm it was made with.
struct Signature {
  std::string key_id;
  SignatureAlgorithm algorithm = SignatureAlgorithm::kEd25519;
  std::string value;  // 32 bytes of HMAC-SHA256, 64 of Ed25519 (RFC 8032)
};

/// A key that signs, verifies, or both. A value; cheap to copy; thread-safe.
///
///   ASSIGN_OR_RETURN(SigningKey key, SigningKey::Parse("2027-01", text_of_2027_01_pem));
///   Signature signature = key.Sign(bytes);             // a private or shared key
///   RETURN_IF_ERROR(key.Verify(bytes, signature));     // any key
class SigningKey {
 public:
  /// `text`: an Ed25519 key in PEM form, private ("PRIVATE KEY", PKCS 8, no password) or public
  /// ("PUBLIC KEY"); or 32 to 128 bytes in hex digits, a shared key for HMAC-SHA256.
  /// InvalidArgument for anything else.
  static absl::StatusOr<SigningKey> Parse(std::string id, std::string_view text);
  /// Reads a key file of at most 16 KiB. The id is the file name without directory and extension;
  /// it may have letters, digits, '.', '-' and '_'. InvalidArgument, naming the path, for every
  /// failure, also if the file cannot be read.
  static absl::StatusOr<SigningKey> Read(const std::string& path);

  const std::string& id() const { return id_; }
  SignatureAlgorithm algorithm() const { return algorithm_; }
  /// False for a public key: it only verifies.
  bool can_sign() const { return can_sign_; }

  /// Aborts unless can_sign(). Takes some 40 us with Ed25519, 1 us with HMAC.
  Signature Sign(std::string_view bytes) const;

  /// OK if `signature` was made over `bytes` with this key; else DataLoss, which says whether the
  /// algorithm or the value is wrong. Does not compare key ids.
  absl::Status Verify(std::string_view bytes, const Signature& signature) const;

 private:
  struct Secret;
  SigningKey() = default;
  std::string id_;
  SignatureAlgorithm algorithm_ = SignatureAlgorithm::kEd25519;
  bool can_sign_ = false;
  std::shared_ptr<const Secret> secret_;
};

/// SigningKey::Read for each path. InvalidArgument also if two keys have the same id.
absl::StatusOr<std::vector<SigningKey>> ReadKeys(const std::vector<std::string>& paths);

/// Verifies `signature` with the key of `keys` that has its key id. DataLoss, with a message that
/// begins with `what`, if there is no such key or the signature is wrong.
absl::Status VerifyWithAny(const std::vector<SigningKey>& keys, std::string_view what,
                           std::string_view bytes, const Signature& signature);

}  // namespace fusion
