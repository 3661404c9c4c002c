#include "core/cache/tiered_store.h"

#include <iterator>
#include <set>

namespace fusion {

TieredStore::TieredStore(std::unique_ptr<Store> front, std::unique_ptr<Store> back,
                         Nanoseconds late_pause)
    : front_(std::move(front)),
      back_(std::move(back)),
      late_({.is_writable = [this] { return back_->CheckWritable().ok(); },
             .is_kept = [this](const Digest& plan) { return front_->HasPlan(plan); },
             .write = [this](const Digest& plan,
                             UnwrittenPlan* facts) { return TryLate(plan, facts); }},
            late_pause) {}

Found<StoredPlan> TieredStore::GetPlan(const EntryKey& key) {
  if (Found<StoredPlan> hit = front_->GetPlan(key)) return hit;
  int64_t forgets = forgets_;
  Found<StoredPlan> hit = back_->GetPlan(key);
  if (hit) PutInFront({hit.value, {}}, forgets);
  return hit;
}

Found<KernelArtifact> TieredStore::GetKernel(const EntryKey& key) {
  if (Found<KernelArtifact> hit = front_->GetKernel(key)) return hit;
  int64_t forgets = forgets_;
  Found<KernelArtifact> hit = back_->GetKernel(key);
  if (hit) PutInFront({nullptr, {hit.value}}, forgets);
  return hit;
}

// Errors are ignored: the front counts them, and the entry is read from the back again.
void TieredStore::PutInFront(const Bundle& bundle, int64_t forgets) {
  MutexLock lock(&mutex_);
  if (forgets == forgets_) front_->PutBundle(bundle).IgnoreError();
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

// Of the entry that a read would return.
std::optional<Digest> TieredStore::ContentOf(EntryKind kind, const Digest& key) const {
  const std::optional<Digest> near = front_->ContentOf(kind, key);
  return near.has_value() ? near : back_->ContentOf(kind, key);
}

// Both tiers record the use. Plans that could not be written are only in the front.
bool TieredStore::Touch(const Digest& plan, const std::vector<Digest>& kernels) {
  const bool near = front_->Touch(plan, kernels);
  return back_->Touch(plan, kernels) || near;
}

// Evictions of the front do not count: the entry is still in the back, or was never written, which
// Touch detects. Forgets count, because an entry may have been only in the front.
int64_t TieredStore::removals() const { return back_->removals() + forgets_ + front_alone_; }

// Such kernels could not be written, or were evicted from the back. The maker of the plan found
// them in the front and did not add them to the bundle. But the back must not have the plan without
// them.
std::vector<std::shared_ptr<const KernelArtifact>> TieredStore::InFrontAlone(const Bundle& bundle) {
  std::vector<std::shared_ptr<const KernelArtifact>> kernels;
  if (bundle.plan == nullptr) return kernels;
  std::set<Digest> seen;
  for (const auto& kernel : bundle.kernels) seen.insert(kernel->key);
  for (const PlanKernel& kernel : bundle.plan->plan.kernels) {
    if (!seen.insert(kernel.key).second || back_->HasKernel(kernel.key)) continue;
    std::shared_ptr<const KernelArtifact> near = front_->PeekKernel(kernel.key);
    if (near != nullptr) kernels.push_back(std::move(near));
  }
  return kernels;
}

absl::Status TieredStore::PutBundle(const Bundle& bundle) {
  if (late_.empty() && InFrontAlone(bundle).empty()) return PutInBoth(bundle);
  MutexLock lock(&completing_);
  return PutInBoth(bundle, InFrontAlone(bundle));
}

absl::Status TieredStore::PutInBoth(const Bundle& bundle,
                                    std::vector<std::shared_ptr<const KernelArtifact>> missing) {
  int64_t forgets = forgets_;
  absl::Status stored;
  if (missing.empty()) {
    stored = back_->PutBundle(bundle);
  } else {
    Bundle whole = bundle;
    std::move(missing.begin(), missing.end(), std::back_inserter(whole.kernels));
    stored = back_->PutBundle(whole);
  }
  PutInFront(bundle, forgets);
  if (!stored.ok()) ++front_alone_;
  if (bundle.plan == nullptr) return stored;
  const Digest& plan = bundle.plan->key;
  if (stored.ok()) {
    late_.Remove(plan);
  } else if (front_->HasPlan(plan)) {
    UnwrittenPlan facts{.kernels = {},
                        .tenant = bundle.tenant,
                        .reason = std::string(Message(stored)),
                        .refusals = IsRefusedForItself(stored) ? 1 : 0};
    for (const auto& kernel : bundle.kernels) facts.kernels.push_back(kernel->key);
    late_.Add(plan, std::move(facts));
  }
  return stored;
}

// True if the back is writable, so that the bundle itself is the cause: its size, its tenant or a
// limit. Also true if space has become free since.
bool TieredStore::IsRefusedForItself(const absl::Status& why) const {
  return !absl::IsUnavailable(why) && back_->CheckWritable().ok();
}

// Writes the plan with those kernels of `facts` and of the plan that the front still has. The
// others are made again when they are requested.
absl::Status TieredStore::PutBehindLate(const Digest& plan, const UnwrittenPlan& facts) {
  Bundle bundle{.plan = front_->PeekPlan(plan), .kernels = {}, .tenant = facts.tenant};
  if (bundle.plan == nullptr) return absl::OkStatus();
  for (const Digest& key : facts.kernels) {
    std::shared_ptr<const KernelArtifact> near = front_->PeekKernel(key);
    if (near != nullptr) bundle.kernels.push_back(std::move(near));
  }
  for (auto& kernel : InFrontAlone(bundle)) bundle.kernels.push_back(std::move(kernel));
  return back_->PutBundle(bundle);
}

LateWriter::Now TieredStore::TryLate(const Digest& plan, UnwrittenPlan* facts) {
  MutexLock lock(&completing_);
  if (!late_.Find(plan).has_value()) return LateWriter::Now::kDone;  // published again since
  const absl::Status stored = PutBehindLate(plan, *facts);
  if (stored.ok()) return LateWriter::Now::kDone;
  facts->reason = Message(stored);
  facts->refusals += IsRefusedForItself(stored) ? 1 : 0;
  return LateWriter::Now::kLater;
}

PlanPage TieredStore::ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                                  size_t limit) {
  return back_->ListPlansOf(filter, after, limit);
}

std::vector<StoreStats> TieredStore::Stats() const {
  std::vector<StoreStats> stats = front_->Stats();
  for (StoreStats& tier : back_->Stats()) stats.push_back(tier);
  if (!stats.empty()) stats.back().unwritten_plans = late_.waiting();
  return stats;
}

std::shared_ptr<const KernelArtifact> TieredStore::PeekKernel(const Digest& key) {
  std::shared_ptr<const KernelArtifact> kernel = front_->PeekKernel(key);
  return kernel != nullptr ? kernel : back_->PeekKernel(key);
}

std::string TieredStore::TenantOf(const Digest& plan) const { return back_->TenantOf(plan); }

bool TieredStore::IsPinned(const Digest& plan) const { return back_->IsPinned(plan); }

absl::StatusOr<PinOutcome> TieredStore::SetPinned(const std::vector<Digest>& plans, bool pinned) {
  std::vector<std::string> tenants;
  for (const Digest& plan : plans) tenants.push_back(back_->TenantOf(plan));
  absl::StatusOr<PinOutcome> outcome = back_->SetPinned(plans, pinned);
  // Plans that only the front has, or that the back just dropped as damaged, are written first.
  const bool gone = absl::IsNotFound(outcome.status()) || absl::IsDataLoss(outcome.status());
  for (size_t i = 0; pinned && gone && !outcome.ok() && i < plans.size(); ++i) {
    MutexLock lock(&completing_);
    if (back_->HasPlan(plans[i]) || !front_->HasPlan(plans[i])) continue;
    const UnwrittenPlan facts = late_.Find(plans[i]).value_or(UnwrittenPlan{.tenant = tenants[i]});
    if (!PutBehindLate(plans[i], facts).ok()) continue;
    late_.Remove(plans[i]);
    outcome = back_->SetPinned(plans, pinned);
  }
  if (!pinned || !outcome.ok() || outcome->missing_kernels == 0) return outcome;
  // Now writing missing kernels cannot evict the pinned entries.
  std::string not_written;
  for (const Digest& key : plans) {
    MutexLock lock(&completing_);
    Bundle missing{.plan = nullptr, .kernels = {}, .tenant = back_->TenantOf(key)};
    missing.kernels = InFrontAlone({.plan = back_->PeekPlan(key), .kernels = {}});
    if (missing.kernels.empty()) continue;
    if (absl::Status stored = back_->PutBundle(missing); !stored.ok())
      not_written = Message(stored);
  }
  absl::StatusOr<PinOutcome> now = back_->SetPinned(plans, true);
  if (!now.ok()) return outcome;  // a plan was forgotten since
  now->changed = outcome->changed;
  now->not_written = std::move(not_written);
  return now;
}

absl::StatusOr<Forgotten> TieredStore::Forget(const ForgetQuery& query) {
  MutexLock completing(&completing_);
  absl::StatusOr<Forgotten> gone = back_->Forget(query);
  {
    MutexLock lock(&mutex_);
    ++forgets_;
    front_->Forget(query).IgnoreError();
  }
  late_.Prune();
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
