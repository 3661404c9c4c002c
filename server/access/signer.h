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

/// The keys of --signing-key: InvalidArgument, naming flag and file, unless the first of them can
/// sign.
absl::StatusOr<std::vector<SigningKey>> ReadSigningKeys(const std::vector<std::string>& paths);

/// The keys of --import-key: InvalidArgument, naming flag and file.
absl::StatusOr<std::vector<SigningKey>> ReadImportKeys(const std::vector<std::string>& paths);

/// Signs what goes to clients with the first of some keys; with none, nothing is signed.
/// Thread-safe. A signature of a plan is remembered: it costs some 40 us the first time, well under
/// a microsecond later.
class Signer {
 public:
  explicit Signer(std::vector<SigningKey> keys) : keys_(std::move(keys)) {}

  /// The ids of all keys, the one that signs first.
  std::vector<std::string> key_ids() const;

  std::optional<Signature> SignPlan(const std::shared_ptr<const StoredPlan>& plan,
                                    const std::vector<KernelStatus>& kernels);
  std::optional<Signature> SignKernel(const Digest& key, const Digest& content) const;

  bool signs() const { return !keys_.empty(); }
  /// Only if it signs.
  Signature Sign(std::string_view bytes) const { return keys_.front().Sign(bytes); }

 private:
  // One plan may be answered with more and more of its kernels ready, and a key may get another
  // plan.
  struct Remembered {
    std::string bytes;  // what the signature is over
    Signature signature;
  };

  const std::vector<SigningKey> keys_;
  Mutex mutex_;
  LruMap<Digest, Remembered> remembered_ ABSL_GUARDED_BY(mutex_){kRememberedBytes};
  static constexpr int64_t kRememberedBytes = int64_t{4} << 20;
};

}  // namespace fusion
