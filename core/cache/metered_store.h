#pragma once

#include <memory>

#include "core/base/clock.h"
#include "core/cache/store.h"

namespace fusion {

/// Receives an event for each use of a store; the server turns them into metrics. Called on the
/// store's calling thread, without locks held. Must be thread-safe and fast.
class StoreObserver {
 public:
  virtual ~StoreObserver() = default;
  /// `tier`: the one that had the entry; Tier::kNone for a miss.
  virtual void OnGet(EntryKind kind, Tier tier, Nanoseconds took) = 0;
  virtual void OnPut(const absl::Status& status, Nanoseconds took) = 0;
};

/// Forwards all calls to `inner` and reports gets and puts. `observer` and `clock` must outlive the
/// store. Thread-safe.
class MeteredStore final : public Store {
 public:
  MeteredStore(std::unique_ptr<Store> inner, StoreObserver& observer,
               const Clock& clock = Clock::Real());

  Found<StoredPlan> GetPlan(const EntryKey& key) override;
  Found<KernelArtifact> GetKernel(const EntryKey& key) override;
  std::shared_ptr<const StoredPlan> PeekPlan(const Digest& key) override;
  bool HasPlan(const Digest& key) const override;
  bool HasKernel(const Digest& key) const override;
  std::optional<Digest> ContentOf(EntryKind kind, const Digest& key) const override;
  bool Touch(const Digest& plan, const std::vector<Digest>& kernels) override;
  int64_t removals() const override;
  absl::Status PutBundle(const Bundle& bundle) override;
  PlanPage ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                       size_t limit) override;
  std::vector<StoreStats> Stats() const override;
  std::shared_ptr<const KernelArtifact> PeekKernel(const Digest& key) override;
  std::string TenantOf(const Digest& plan) const override;
  bool IsPinned(const Digest& plan) const override;
  absl::Status CheckWritable() const override;
  std::string WhyUnwritten(const Digest& plan) const override;
  absl::StatusOr<PinOutcome> SetPinned(const std::vector<Digest>& plans, bool pinned) override;
  absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) override;
  absl::StatusOr<StoreCheck> Verify(const CancelToken& cancel) override;
  absl::StatusOr<StoreCompaction> Compact(const CancelToken& cancel) override;
  DiskFacts Facts() const override;
  std::map<std::string, int64_t> TenantBytes() const override;
  int64_t CachedBytes() const override { return inner_->CachedBytes(); }
  void TrimMemory() override { inner_->TrimMemory(); }

 private:
  const std::unique_ptr<Store> inner_;
  StoreObserver& observer_;
  const Clock& clock_;
};

}  // namespace fusion
