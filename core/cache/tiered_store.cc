#include "core/cache/tiered_store.h"

namespace fusion {

TieredStore::TieredStore(std::unique_ptr<Store> front, std::unique_ptr<Store> back)
    : front_(std::move(front)), back_(std::move(back)) {}

Found<StoredPlan> TieredStore::GetPlan(const EntryKey& key) {
  if (Found<StoredPlan> hit = front_->GetPlan(key)) return hit;
  Found<StoredPlan> hit = back_->GetPlan(key);
  // The front counts its own refusals; a plan that is not copied is read from behind again.
  if (hit) front_->PutBundle({hit.value, {}}).IgnoreError();
  return hit;
}

Found<KernelArtifact> TieredStore::GetKernel(const EntryKey& key) {
  if (Found<KernelArtifact> hit = front_->GetKernel(key)) return hit;
  Found<KernelArtifact> hit = back_->GetKernel(key);
  if (hit) front_->PutBundle({nullptr, {hit.value}}).IgnoreError();
  return hit;
}

std::shared_ptr<const StoredPlan> TieredStore::PeekPlan(const Digest& key) {
  std::shared_ptr<const StoredPlan> plan = front_->PeekPlan(key);
  return plan != nullptr ? plan : back_->PeekPlan(key);
}

bool TieredStore::HasPlan(const Digest& key) const {
  return front_->HasPlan(key) || back_->HasPlan(key);
}

// The front keeps what is used near, the back says whether it is there; what it could not write is
// in front.
bool TieredStore::Touch(const Digest& plan, const std::vector<Digest>& kernels) {
  const bool near = front_->Touch(plan, kernels);
  return back_->Touch(plan, kernels) || near;
}

// What goes from the front is behind it still, or it was never written: Touch tells.
int64_t TieredStore::removals() const { return back_->removals(); }

absl::Status TieredStore::PutBundle(const Bundle& bundle) {
  absl::Status stored = back_->PutBundle(bundle);
  front_->PutBundle(bundle).IgnoreError();
  return stored;
}

PlanPage TieredStore::ListPlans(const std::optional<PlanPlace>& after, size_t limit) {
  return back_->ListPlans(after, limit);
}

std::vector<StoreStats> TieredStore::Stats() const {
  std::vector<StoreStats> stats = front_->Stats();
  for (StoreStats& tier : back_->Stats()) stats.push_back(tier);
  return stats;
}

}  // namespace fusion
