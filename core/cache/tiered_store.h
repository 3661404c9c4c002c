#pragma once

#include <atomic>
#include <memory>

#include "core/base/threads/mutex.h"
#include "core/cache/late_writer.h"
#include "core/cache/store.h"

namespace fusion {

/// A small fast store in front of a large slow one. What is found behind is copied to the front;
/// what is published goes to both; a plan that cannot be written behind is in front alone until it
/// can. Thread-safe.
class TieredStore final : public Store {
 public:
  /// `late_pause`: between tries to write what could not be written.
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
  /// The status of the store behind; the front takes the bundle even if that fails, and its plan is
  /// written once the store behind can write again, if the front has it still.
  absl::Status PutBundle(const Bundle& bundle) override;
  absl::Status CheckWritable() const override { return back_->CheckWritable(); }
  std::string WhyUnwritten(const Digest& plan) const override { return late_.ReasonOf(plan); }
  PlanPage ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                       size_t limit) override;
  std::vector<StoreStats> Stats() const override;
  std::shared_ptr<const KernelArtifact> PeekKernel(const Digest& key) override;
  std::string TenantOf(const Digest& plan) const override;
  /// What is pinned and in front alone, plans and their kernels, is written behind.
  absl::StatusOr<PinOutcome> SetPinned(const std::vector<Digest>& plans, bool pinned) override;
  absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) override;
  absl::StatusOr<StoreCheck> Verify(const CancelToken& cancel) override;
  absl::StatusOr<StoreCompaction> Compact(const CancelToken& cancel) override;
  DiskFacts Facts() const override;
  std::map<std::string, int64_t> TenantBytes() const override;
  int64_t CachedBytes() const override { return front_->CachedBytes() + back_->CachedBytes(); }

 private:
  std::vector<std::shared_ptr<const KernelArtifact>> InFrontAlone(const Bundle& bundle);
  // `missing`: kernels that are in front alone, and go behind with it.
  absl::Status PutInBoth(const Bundle& bundle,
                         std::vector<std::shared_ptr<const KernelArtifact>> missing = {});
  absl::Status PutBehindLate(const Digest& plan, const UnwrittenPlan& facts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(completing_);
  LateWriter::Now TryLate(const Digest& plan, UnwrittenPlan* facts);
  bool IsRefusedForItself(const absl::Status& why) const;
  // What was read or written behind since there were so many `forgets`.
  void PutInFront(const Bundle& bundle, int64_t forgets);

  const std::unique_ptr<Store> front_;
  const std::unique_ptr<Store> back_;
  // Held while something goes from the front behind, and while it is forgotten or, as long as plans
  // wait to be written, something newer is published: it must not come back so.
  Mutex completing_;
  // Held for the front alone. What was read or written behind before something was forgotten there
  // must not come into the front afterwards.
  Mutex mutex_;
  std::atomic<int64_t> forgets_{0};
  // Bundles that went into the front alone: there the same keys may stand for other bytes.
  std::atomic<int64_t> front_alone_{0};
  LateWriter late_;  // ends before the others
};

}  // namespace fusion
