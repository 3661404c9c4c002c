#include "server/access/signer.h"

#include "core/base/text/text.h"
#include "core/bundle/signed_bytes.h"

namespace fusion {

absl::StatusOr<std::vector<SigningKey>> ReadSigningKeys(const std::vector<std::string>& paths) {
  absl::StatusOr<std::vector<SigningKey>> keys = ReadKeys(paths);
  if (!keys.ok()) return Annotate(keys.status(), "--signing-key");
  if (!keys->empty() && !keys->front().can_sign()) {
    return InvalidArgument("--signing-key: ", paths.front(),
                           ": a public key; the first one must be private or shared");
  }
  return keys;
}

absl::StatusOr<std::vector<SigningKey>> ReadImportKeys(const std::vector<std::string>& paths) {
  absl::StatusOr<std::vector<SigningKey>> keys = ReadKeys(paths);
  if (!keys.ok()) return Annotate(keys.status(), "--import-key");
  return keys;
}

std::vector<std::string> Signer::key_ids() const {
  std::vector<std::string> out;
  for (const SigningKey& key : keys_) out.push_back(key.id());
  return out;
}

std::optional<Signature> Signer::SignPlan(const std::shared_ptr<const StoredPlan>& plan,
                                          const std::vector<KernelStatus>& kernels) {
  if (keys_.empty()) return std::nullopt;
  std::string bytes = SignedPlanBytes(plan->key, plan->content, kernels);
  {
    MutexLock lock(&mutex_);
    const Remembered* known = remembered_.Find(plan->key);
    if (known != nullptr && known->bytes == bytes) return known->signature;
  }
  Signature signature = keys_.front().Sign(bytes);
  const auto cost = static_cast<int64_t>(sizeof(Remembered) + 2 * sizeof(Digest) + bytes.size() +
                                         signature.value.size());
  std::vector<std::pair<Digest, Remembered>> forgotten;  // dies unlocked
  MutexLock lock(&mutex_);
  forgotten = remembered_.Insert(plan->key, {std::move(bytes), signature}, cost);
  return signature;
}

std::optional<Signature> Signer::SignKernel(const Digest& key, const Digest& content) const {
  if (keys_.empty()) return std::nullopt;
  return keys_.front().Sign(SignedKernelBytes(key, content));
}

}  // namespace fusion
