#include "core/cache/metered_store.h"

namespace fusion {

MeteredStore::MeteredStore(std::unique_ptr<Store> inner, StoreObserver& observer,
                           const Clock& clock)
    : inner_(std::move(inner)), observer_(observer), clock_(clock) {}

Found<StoredPlan> MeteredStore::GetPlan(const EntryKey& key) {
  Nanoseconds start = clock_.Now();
  Found<StoredPlan> found = inner_->GetPlan(key);
  observer_.OnGet(EntryKind::kPlan, found.tier, clock_.Now() - start);
  return found;
}

Found<KernelArtifact> MeteredStore::GetKernel(const EntryKey& key) {
  Nanoseconds start = clock_.Now();
  Found<KernelArtifact> found = inner_->GetKernel(key);
  observer_.OnGet(EntryKind::kKernel, found.tier, clock_.Now() - start);
  return found;
}

std::shared_ptr<const StoredPlan> MeteredStore::PeekPlan(const Digest& key) {
  return inner_->PeekPlan(key);
}

bool MeteredStore::HasPlan(const Digest& key) const { return inner_->HasPlan(key); }

bool MeteredStore::Touch(const Digest& plan, const std::vector<Digest>& kernels) {
  return inner_->Touch(plan, kernels);
}

int64_t MeteredStore::removals() const { return inner_->removals(); }

absl::Status MeteredStore::PutBundle(const Bundle& bundle) {
  Nanoseconds start = clock_.Now();
  absl::Status status = inner_->PutBundle(bundle);
  observer_.OnPut(status, clock_.Now() - start);
  return status;
}

PlanPage MeteredStore::ListPlans(const std::optional<PlanPlace>& after, size_t limit) {
  return inner_->ListPlans(after, limit);
}

std::vector<StoreStats> MeteredStore::Stats() const { return inner_->Stats(); }

}  // namespace fusion
