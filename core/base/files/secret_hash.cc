#include "core/base/files/secret_hash.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <optional>

namespace fusion {
namespace {

constexpr size_t kTagBytes = 16;
using Key = std::array<unsigned char, 32>;
static_assert(sizeof(Digest::bytes) == 2 * kTagBytes);

std::optional<std::array<Key, 2>> DrawKeys() {
  std::array<Key, 2> keys;
  for (Key& key : keys) {
    if (RAND_priv_bytes(key.data(), static_cast<int>(key.size())) != 1) return std::nullopt;
  }
  return keys;
}

/// Poly1305, of one thread.
class Poly1305 {
 public:
  Poly1305() {
    EVP_MAC* mac = EVP_MAC_fetch(nullptr, "POLY1305", nullptr);
    if (mac != nullptr) context_ = EVP_MAC_CTX_new(mac);
    EVP_MAC_free(mac);  // the context keeps it
  }
  ~Poly1305() { EVP_MAC_CTX_free(context_); }
  Poly1305(const Poly1305&) = delete;
  Poly1305& operator=(const Poly1305&) = delete;

  bool Hash(const std::vector<std::string_view>& pieces, const Key& key, unsigned char* tag) {
    bool ok = context_ != nullptr &&
              EVP_MAC_init(context_, key.data(), key.size(), /*params=*/nullptr) == 1;
    for (std::string_view piece : pieces) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(piece.data());
      ok = ok && EVP_MAC_update(context_, bytes, piece.size()) == 1;
    }
    size_t size = 0;
    return ok && EVP_MAC_final(context_, tag, &size, kTagBytes) == 1 && size == kTagBytes;
  }

 private:
  EVP_MAC_CTX* context_ = nullptr;
};

}  // namespace

Digest SecretHash(const std::vector<std::string_view>& pieces) {
  static const std::optional<std::array<Key, 2>> keys = DrawKeys();
  thread_local Poly1305 poly1305;
  Digest digest;
  for (size_t i = 0; i < 2; ++i) {
    unsigned char* tag = digest.bytes.data() + i * kTagBytes;
    if (!keys.has_value() || !poly1305.Hash(pieces, (*keys)[i], tag)) return Sha256(pieces);
  }
  return digest;
}

}  // namespace fusion
