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

bool MeteredStore::HasKernel(const Digest& key) const { return inner_->HasKernel(key); }

std::optional<Digest> MeteredStore::ContentOf(EntryKind kind, const Digest& key) const {
  return inner_->ContentOf(kind, key);
}

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

PlanPage MeteredStore::ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                                   size_t limit) {
  return inner_->ListPlansOf(filter, after, limit);
}

std::vector<StoreStats> MeteredStore::Stats() const { return inner_->Stats(); }

std::shared_ptr<const KernelArtifact> MeteredStore::PeekKernel(const Digest& key) {
  return inner_->PeekKernel(key);
}
absl::Status MeteredStore::CheckWritable() const { return inner_->CheckWritable(); }
std::string MeteredStore::WhyUnwritten(const Digest& plan) const {
  return inner_->WhyUnwritten(plan);
}
std::string MeteredStore::TenantOf(const Digest& plan) const { return inner_->TenantOf(plan); }

bool MeteredStore::IsPinned(const Digest& plan) const { return inner_->IsPinned(plan); }
absl::StatusOr<PinOutcome> MeteredStore::SetPinned(const std::vector<Digest>& plans, bool pinned) {
  return inner_->SetPinned(plans, pinned);
}
absl::StatusOr<Forgotten> MeteredStore::Forget(const ForgetQuery& query) {
  return inner_->Forget(query);
}
absl::StatusOr<StoreCheck> MeteredStore::Verify(const CancelToken& cancel) {
  return inner_->Verify(cancel);
}
absl::StatusOr<StoreCompaction> MeteredStore::Compact(const CancelToken& cancel) {
  return inner_->Compact(cancel);
}
DiskFacts MeteredStore::Facts() const { return inner_->Facts(); }
std::map<std::string, int64_t> MeteredStore::TenantBytes() const { return inner_->TenantBytes(); }

}  // namespace fusion
