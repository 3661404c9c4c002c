#pragma once

#include <atomic>
#include <memory>

#include "core/base/threads/mutex.h"
#include "core/cache/late_writer.h"
#include "core/cache/store.h"

namespace fusion {

/// A small fast store (front) before a large slow one (back). Entries found in the back are copied
/// to the front. Bundles are written to both. If the back rejects a bundle, it is kept in the
/// front, and its plan is written to the back later (LateWriter). Thread-safe.
class TieredStore final : public Store {
 public:
  /// `late_pause`: time between attempts to write rejected plans.
  TieredStore(std::unique_ptr<Store> front, std::unique_ptr<Store> back,
              Nanoseconds late_pause = std::chrono::seconds(1));

  Found<StoredPlan> GetPlan(const EntryKey& key) override;
  Found<KernelArtifact> GetKernel(const EntryKey& key) override;
  std::shared_ptr<const StoredPlan> PeekPlan(const Digest& key) override;
  bool HasPlan(const Digest& key) const override;
  bool HasKernel(const Digest& key) const override;
  std::optional<Digest> ContentOf(EntryKind kind, const Digest& key) const override;
  bool Touch(const Digest& plan, const std::vector<Digest>& kernels) override;
  int64_t removals() const override;
  /// Returns the status of the back. The front takes the bundle even if the back fails. Then the
  /// plan is written to the back later, if the front still has it by then.
  absl::Status PutBundle(const Bundle& bundle) override;
  absl::Status CheckWritable() const override { return back_->CheckWritable(); }
  std::string WhyUnwritten(const Digest& plan) const override { return late_.ReasonOf(plan); }
  PlanPage ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                       size_t limit) override;
  std::vector<StoreStats> Stats() const override;
  std::shared_ptr<const KernelArtifact> PeekKernel(const Digest& key) override;
  std::string TenantOf(const Digest& plan) const override;
  bool IsPinned(const Digest& plan) const override;
  /// Pinned plans and kernels that are only in the front are written to the back.
  absl::StatusOr<PinOutcome> SetPinned(const std::vector<Digest>& plans, bool pinned) override;
  absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) override;
  absl::StatusOr<StoreCheck> Verify(const CancelToken& cancel) override;
  absl::StatusOr<StoreCompaction> Compact(const CancelToken& cancel) override;
  DiskFacts Facts() const override;
  std::map<std::string, int64_t> TenantBytes() const override;
  int64_t CachedBytes() const override { return front_->CachedBytes() + back_->CachedBytes(); }
  void TrimMemory() override { front_->TrimMemory(); }

 private:
  // Kernels of the bundle's plan that only the front has and the bundle lacks.
  std::vector<std::shared_ptr<const KernelArtifact>> InFrontAlone(const Bundle& bundle);
  // `missing`: kernels that only the front has; they are written to the back with the bundle.
  absl::Status PutInBoth(const Bundle& bundle,
                         std::vector<std::shared_ptr<const KernelArtifact>> missing = {});
  absl::Status PutBehindLate(const Digest& plan, const UnwrittenPlan& facts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(completing_);
  LateWriter::Now TryLate(const Digest& plan, UnwrittenPlan* facts);
  bool IsRefusedForItself(const absl::Status& why) const;
  // Copies entries of the back to the front, unless something was forgotten since forgets_ was
  // `forgets`.
  void PutInFront(const Bundle& bundle, int64_t forgets);

  const std::unique_ptr<Store> front_;
  const std::unique_ptr<Store> back_;
  // Held while entries are copied from the front to the back, while entries are forgotten, and, if
  // plans wait to be written, while a bundle is published. So a late copy cannot restore a
  // forgotten entry or overwrite a newer one.
  Mutex completing_;
  // Held while entries are copied to the front and while the front forgets. So entries read from
  // the back before a Forget do not get into the front after it.
  Mutex mutex_;
  std::atomic<int64_t> forgets_{0};
  // Bundles that only the front took. They may have replaced entries there, so removals() counts
  // them.
  std::atomic<int64_t> front_alone_{0};
  LateWriter late_;  // last: destroyed before the stores it uses
};

}  // namespace fusion
