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

/// Somebody's word that bytes are his own.
struct Signature {
  std::string key_id;
  SignatureAlgorithm algorithm = SignatureAlgorithm::kEd25519;
  std::string value;  // 32 bytes of HMAC-SHA256, 64 of Ed25519 (RFC 8032)
};

/// A key that signs, that proves signatures right, or both. A value; cheap to copy; thread-safe.
///
///   ASSIGN_OR_RETURN(SigningKey key, SigningKey::Parse("2027-01", text_of_2027_01_pem));
///   Signature signature = key.Sign(bytes);             // a private or a shared key
///   RETURN_IF_ERROR(key.Verify(bytes, signature));     // any key
class SigningKey {
 public:
  /// `text`: PEM of an Ed25519 key, private ("PRIVATE KEY", PKCS 8, no password) or public ("PUBLIC
  /// KEY"); or 32 to 128 bytes as hex digits, the key of HMAC-SHA256 that both sides hold.
  /// InvalidArgument for anything else.
  static absl::StatusOr<SigningKey> Parse(std::string id, std::string_view text);
  /// Of a file; the id is its name without directory and ending. Errors name it.
  static absl::StatusOr<SigningKey> Read(const std::string& path);

  const std::string& id() const { return id_; }
  SignatureAlgorithm algorithm() const { return algorithm_; }
  /// False for a public key: it only verifies.
  bool can_sign() const { return can_sign_; }

  /// Some 40 us with Ed25519, 1 us with HMAC. Only with a key that can.
  Signature Sign(std::string_view bytes) const;

  /// DataLoss if `signature` is not one of this key over `bytes`, saying what differs.
  absl::Status Verify(std::string_view bytes, const Signature& signature) const;

 private:
  struct Secret;
  SigningKey() = default;
  std::string id_;
  SignatureAlgorithm algorithm_ = SignatureAlgorithm::kEd25519;
  bool can_sign_ = false;
  std::shared_ptr<const Secret> secret_;
};

/// Keys by their files, as SigningKey::Read. InvalidArgument if two of them have one id.
absl::StatusOr<std::vector<SigningKey>> ReadKeys(const std::vector<std::string>& paths);

/// OK if one of `keys` says that `signature` is right. DataLoss, beginning with `what`, if it is
/// of a key that is not among them, or wrong.
absl::Status VerifyWithAny(const std::vector<SigningKey>& keys, std::string_view what,
                           std::string_view bytes, const Signature& signature);

}  // namespace fusion
