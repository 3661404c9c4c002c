#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files/signature.h"
#include "core/base/threads/mutex.h"
#include "core/bundle/answer.h"
#include "core/cache/memory/lru_map.h"
#include "core/wire/stored_plan.h"

namespace fusion {

/// Reads the keys of --signing-key. InvalidArgument, naming flag and file, if one cannot be read or
/// the first one is a public key, which cannot sign.
absl::StatusOr<std::vector<SigningKey>> ReadSigningKeys(const std::vector<std::string>& paths);

/// Reads the keys of --import-key. InvalidArgument, naming flag and file, if one cannot be read.
absl::StatusOr<std::vector<SigningKey>> ReadImportKeys(const std::vector<std::string>& paths);

/// Signs plans, kernels and archives for clients with the first of `keys`; without keys, nothing is
/// signed. Thread-safe. Signing a plan takes about 40 us; its signature is cached, and a repeated
/// call takes well under a microsecond.
class Signer {
 public:
  explicit Signer(std::vector<SigningKey> keys) : keys_(std::move(keys)) {}

  /// The ids of all keys; the first one signs.
  std::vector<std::string> key_ids() const;

  /// The signature of a plan and the states of its kernels; nullopt without keys.
  std::optional<Signature> SignPlan(const std::shared_ptr<const StoredPlan>& plan,
                                    const std::vector<KernelStatus>& kernels);
  /// The signature of a kernel's key and the digest of its bytes; nullopt without keys.
  std::optional<Signature> SignKernel(const Digest& key, const Digest& content) const;

  bool signs() const { return !keys_.empty(); }
  /// Requires signs().
  Signature Sign(std::string_view bytes) const { return keys_.front().Sign(bytes); }

 private:
  // The signature of a key becomes outdated when more kernels of the plan are ready, or when the
  // key gets another plan.
  struct Remembered {
    std::string bytes;  // the signed bytes
    Signature signature;
  };

  const std::vector<SigningKey> keys_;
  Mutex mutex_;
  LruMap<Digest, Remembered> remembered_ ABSL_GUARDED_BY(mutex_){kRememberedBytes};
  static constexpr int64_t kRememberedBytes = int64_t{4} << 20;
};

}  // namespace fusion
