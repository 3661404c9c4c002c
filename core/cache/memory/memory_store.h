#pragma once

#include <map>
#include <utility>

#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "core/cache/memory/lru_map.h"
#include "core/cache/store.h"

namespace fusion {

/// Entries in memory, at most `budget_bytes` by ChargedBytes. Evicts the least recently used first.
/// An entry larger than `largest_bytes` is not kept, and PutBundle returns OK nevertheless. So set
/// that limit only if a disk store has the entry too. `logger` must outlive it. Thread-safe.
class MemoryStore final : public Store {
 public:
  MemoryStore(int64_t budget_bytes, Logger& logger)
      : MemoryStore(budget_bytes, /*largest_bytes=*/budget_bytes, logger) {}
  MemoryStore(int64_t budget_bytes, int64_t largest_bytes, Logger& logger);

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
  absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) override;
  int64_t CachedBytes() const override;
  void TrimMemory() override;

 private:
  using Id = std::pair<EntryKind, Digest>;
  // One of the two is set, depending on the kind.
  struct Entry {
    std::shared_ptr<const StoredPlan> plan;
    std::shared_ptr<const KernelArtifact> kernel;
  };

  using Evicted = std::vector<std::pair<Id, Entry>>;

  template <typename T>
  Found<T> Get(EntryKind kind, const EntryKey& key, std::shared_ptr<const T> Entry::*member);
  void Remove(const Id& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes that entries_ has evicted these.
  void Count(const Evicted& evicted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(const Id& id, Entry entry, int64_t bytes, Evicted* evicted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Logger& logger_;
  mutable Mutex mutex_;
  LruMap<Id, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  PlanPlaces plans_ ABSL_GUARDED_BY(mutex_);  // those in entries_
  int64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t removals_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusion
