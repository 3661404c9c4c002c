#include "core/cache/tiered_store.h"

#include <set>

namespace fusion {
namespace {

ForgetQuery KeysIn(const Bundle& bundle) {
  ForgetQuery keys;
  if (bundle.plan != nullptr) keys.plans.push_back(bundle.plan->key);
  for (const auto& kernel : bundle.kernels) keys.kernels.push_back(kernel->key);
  return keys;
}

}  // namespace

TieredStore::TieredStore(std::unique_ptr<Store> front, std::unique_ptr<Store> back)
    : front_(std::move(front)), back_(std::move(back)) {}

Found<StoredPlan> TieredStore::GetPlan(const EntryKey& key) {
  if (Found<StoredPlan> hit = front_->GetPlan(key)) return hit;
  int64_t forgets = forgets_;
  Found<StoredPlan> hit = back_->GetPlan(key);
  // The front counts its own refusals; a plan that is not copied is read from behind again.
  if (hit) front_->PutBundle({hit.value, {}}).IgnoreError();
  if (hit && forgets != forgets_) front_->Forget({.plans = {key.digest}}).IgnoreError();
  return hit;
}

Found<KernelArtifact> TieredStore::GetKernel(const EntryKey& key) {
  if (Found<KernelArtifact> hit = front_->GetKernel(key)) return hit;
  int64_t forgets = forgets_;
  Found<KernelArtifact> hit = back_->GetKernel(key);
  if (hit) front_->PutBundle({nullptr, {hit.value}}).IgnoreError();
  if (hit && forgets != forgets_) front_->Forget({.kernels = {key.digest}}).IgnoreError();
  return hit;
}

std::shared_ptr<const StoredPlan> TieredStore::PeekPlan(const Digest& key) {
  std::shared_ptr<const StoredPlan> plan = front_->PeekPlan(key);
  return plan != nullptr ? plan : back_->PeekPlan(key);
}

bool TieredStore::HasPlan(const Digest& key) const {
  return front_->HasPlan(key) || back_->HasPlan(key);
}

bool TieredStore::HasKernel(const Digest& key) const {
  return front_->HasKernel(key) || back_->HasKernel(key);
}

// The front keeps what is used near, the back says whether it is there; what it could not write is
// in front.
bool TieredStore::Touch(const Digest& plan, const std::vector<Digest>& kernels) {
  const bool near = front_->Touch(plan, kernels);
  return back_->Touch(plan, kernels) || near;
}

// What goes from the front for want of room is behind it still, or it was never written: Touch
// tells. What is forgotten may have been in front alone.
int64_t TieredStore::removals() const { return back_->removals() + forgets_; }

// With those kernels of its plan that are in front alone, because they could not be written, or had
// to go behind for want of room: whoever made the plan found them in front, and the plan must not
// be behind without them.
Bundle TieredStore::Completed(const Bundle& bundle) {
  Bundle whole = bundle;
  if (bundle.plan == nullptr) return whole;
  std::set<Digest> seen;
  for (const auto& kernel : bundle.kernels) seen.insert(kernel->key);
  for (const PlanKernel& kernel : bundle.plan->plan.kernels) {
    if (!seen.insert(kernel.key).second || back_->HasKernel(kernel.key)) continue;
    std::shared_ptr<const KernelArtifact> near = front_->PeekKernel(kernel.key);
    if (near != nullptr) whole.kernels.push_back(std::move(near));
  }
  return whole;
}

absl::Status TieredStore::PutBundle(const Bundle& bundle) {
  int64_t forgets = forgets_;
  absl::Status stored = back_->PutBundle(Completed(bundle));
  front_->PutBundle(bundle).IgnoreError();
  if (forgets != forgets_) front_->Forget(KeysIn(bundle)).IgnoreError();
  return stored;
}

PlanPage TieredStore::ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                                  size_t limit) {
  return back_->ListPlansOf(filter, after, limit);
}

std::vector<StoreStats> TieredStore::Stats() const {
  std::vector<StoreStats> stats = front_->Stats();
  for (StoreStats& tier : back_->Stats()) stats.push_back(tier);
  return stats;
}

std::shared_ptr<const KernelArtifact> TieredStore::PeekKernel(const Digest& key) {
  std::shared_ptr<const KernelArtifact> kernel = front_->PeekKernel(key);
  return kernel != nullptr ? kernel : back_->PeekKernel(key);
}

std::string TieredStore::TenantOf(const Digest& plan) const { return back_->TenantOf(plan); }

absl::StatusOr<PinOutcome> TieredStore::SetPinned(const std::vector<Digest>& plans, bool pinned) {
  for (const Digest& key : plans) {
    if (!pinned) break;
    const Bundle whole =
        Completed({.plan = back_->PeekPlan(key), .kernels = {}, .tenant = back_->TenantOf(key)});
    // Where there is no room for them the outcome says so.
    if (!whole.kernels.empty()) back_->PutBundle(whole).IgnoreError();
  }
  return back_->SetPinned(plans, pinned);
}

absl::StatusOr<Forgotten> TieredStore::Forget(const ForgetQuery& query) {
  absl::StatusOr<Forgotten> gone = back_->Forget(query);
  ++forgets_;
  front_->Forget(query).IgnoreError();
  return gone;
}

absl::StatusOr<StoreCheck> TieredStore::Verify(const CancelToken& cancel) {
  return back_->Verify(cancel);
}

absl::StatusOr<StoreCompaction> TieredStore::Compact(const CancelToken& cancel) {
  return back_->Compact(cancel);
}

DiskFacts TieredStore::Facts() const { return back_->Facts(); }

std::map<std::string, int64_t> TieredStore::TenantBytes() const { return back_->TenantBytes(); }

}  // namespace fusion
