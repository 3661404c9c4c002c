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

bool MeteredStore::ContainsKernel(const Digest& key) const { return inner_->ContainsKernel(key); }

absl::Status MeteredStore::PutBundle(const Bundle& bundle) {
  Nanoseconds start = clock_.Now();
  absl::Status status = inner_->PutBundle(bundle);
  auto entries = static_cast<int64_t>(bundle.kernels.size()) + (bundle.plan != nullptr ? 1 : 0);
  observer_.OnPut(status, entries, clock_.Now() - start);
  return status;
}

std::vector<StoreStats> MeteredStore::Stats() const { return inner_->Stats(); }

}  // namespace fusion
