#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "core/cache/measurement_store.h"
#include "core/cache/rocks/eviction_index.h"
#include "core/cache/rocks/store_lock.h"
#include "core/cache/store.h"

namespace rocksdb {
class WriteBatch;
}  // namespace rocksdb

namespace fusion {

class RocksDatabase;

struct RocksStoreOptions {
  /// Directory of the database; created if absent. Its neighbour `<dir>.lock` keeps others out.
  std::string dir;
  /// Logical bytes of plans and kernels. The directory takes at most three times that and
  /// 192 MiB (server/README.md, "The store").
  int64_t budget_bytes = int64_t{4} << 30;
  /// Of them those of one tenant (Bundle::tenant); 0: no limit of its own. May be empty: none has.
  std::function<int64_t(const std::string& tenant)> tenant_budget;
  /// Memory for table blocks (keys, plans). Kernels are cached by the system and by MemoryStore.
  int64_t block_cache_bytes = int64_t{64} << 20;
  /// Below this much free space nothing is written: RocksDB needs room to recover from a full disk.
  int64_t min_free_bytes = int64_t{256} << 20;
  /// Free bytes of the file system of a directory. Default: statvfs.
  std::function<absl::StatusOr<int64_t>(const std::string& dir)> free_bytes;
  /// Reads what is there, and writes nothing: for a disk with no room to open it otherwise.
  bool read_only = false;
  /// LockStore of `dir`, if somebody has it already.
  StoreLock lock = nullptr;
};

/// Plans and kernels on disk, in RocksDB.
///
///   ASSIGN_OR_RETURN(auto disk, RocksStore::Open({.dir = "store"}, logger));
///
/// A bundle is one synced write batch: after kill -9 or a crash of the
/// machine it is there as a whole or not at all. Entries carry their full key and digests; a reader
/// that meets a bad one deletes it and reports a miss. Least used entries go when the budget is
/// reached; times of use are written along with later bundles, so a crash forgets the last ones.
/// On a full disk it goes on reading and writes again, by itself, when there is room; opened on one
/// it can be with OpenDiskStores.
/// Thread-safe. `logger` and `clock` outlive it.
class RocksStore final : public Store {
 public:
  /// FailedPrecondition: another process (or this one) has the store open. ResourceExhausted: no
  /// space. Unavailable: the directory cannot be used. One of an older schema is migrated; one of a
  /// newer schema is left alone: FailedPrecondition. A database that RocksDB finds corrupt is
  /// renamed to `<dir>.corrupt-<Unix seconds>`, logged, and an empty one opened. To be read only it
  /// must be there, sound and of our schema.
  static absl::StatusOr<std::unique_ptr<RocksStore>> Open(RocksStoreOptions options, Logger& logger,
                                                          const Clock& clock = Clock::Real());
  ~RocksStore() override;

  Found<StoredPlan> GetPlan(const EntryKey& key) override;
  Found<KernelArtifact> GetKernel(const EntryKey& key) override;
  std::shared_ptr<const StoredPlan> PeekPlan(const Digest& key) override;
  bool HasPlan(const Digest& key) const override;
  bool HasKernel(const Digest& key) const override;
  std::optional<Digest> ContentOf(EntryKind kind, const Digest& key) const override;
  bool Touch(const Digest& plan, const std::vector<Digest>& kernels) override;
  int64_t removals() const override;
  /// Logs when it changes.
  absl::Status CheckWritable() const override;
  absl::Status PutBundle(const Bundle& bundle) override;
  PlanPage ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                       size_t limit) override;
  std::vector<StoreStats> Stats() const override;
  std::shared_ptr<const KernelArtifact> PeekKernel(const Digest& key) override;
  std::string TenantOf(const Digest& plan) const override;
  absl::StatusOr<PinOutcome> SetPinned(const std::vector<Digest>& plans, bool pinned) override;
  absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) override;
  absl::StatusOr<StoreCheck> Verify(const CancelToken& cancel) override;
  absl::StatusOr<StoreCompaction> Compact(const CancelToken& cancel) override;
  DiskFacts Facts() const override;
  std::map<std::string, int64_t> TenantBytes() const override;
  int64_t CachedBytes() const override;

  /// The measurements in the same database, at most `budget_bytes` of them. Once at most; may
  /// outlive the store.
  std::unique_ptr<MeasurementStore> OpenMeasurements(int64_t budget_bytes = int64_t{64} << 20);

  /// True if Open found a damaged database and put it aside.
  bool started_empty_after_damage() const;

 private:
  // Of the budget, so that there is always room for what is asked for now.
  static constexpr int64_t kPinnedQuarters = 3;
  int64_t MostPinned() const { return options_.budget_bytes / 4 * kPinnedQuarters; }

  // Bytes that a bundle adds: all of them, those that its tenant is charged for, and those that
  // are pinned then and were not before.
  struct BundleSize {
    int64_t bytes = 0;
    int64_t charged = 0;
    int64_t pinned = 0;
  };

  RocksStore(RocksStoreOptions options, std::shared_ptr<RocksDatabase> database, Logger& logger,
             const Clock& clock);

  static absl::StatusOr<std::unique_ptr<RocksStore>> OpenToRead(RocksStoreOptions options,
                                                                Logger& logger, const Clock& clock);
  absl::Status LoadIndex();
  absl::Status LoadPins() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropUnlisted(const std::string& facts_key, rocksdb::WriteBatch* batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(const Bundle& bundle) ABSL_LOCKS_EXCLUDED(write_mutex_);
  absl::Status MakeRoom(const BundleSize& size, const std::string& tenant,
                        const std::set<EntryId>& keep, std::vector<EvictionIndex::Entry>* victims)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Commit(rocksdb::WriteBatch* batch, std::string_view what);
  absl::Status PinAll(const std::vector<Digest>& plans, rocksdb::WriteBatch* batch,
                      std::map<Digest, std::vector<Digest>>* pins)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status ForgetAll(const std::vector<EntryId>& ids, bool pins)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void VerifyEntry(const EntryId& id, StoreCheck* check);
  absl::Status VerifyFiles(const CancelToken& cancel, StoreCheck* check);
  absl::Status CheckRoomToCompact() const;
  absl::Status CheckEntry(const EntryId& id, int64_t* bytes, std::vector<Digest>* kernels);
  void Delete(const EntryId& id, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void LogDropped(const EntryId& id, std::string_view reason) const;
  void WriteDeletes(rocksdb::WriteBatch* batch);
  bool IsListed(const EntryId& id) const;
  absl::Status Refused(absl::Status why);
  void WriteUseTimes();
  template <typename T>
  absl::StatusOr<T> Look(EntryKind kind, const EntryKey& asked,
                         absl::StatusOr<T> (*decode)(std::string_view bytes));
  template <typename T>
  absl::StatusOr<T> LookAgain(EntryKind kind, const EntryKey& asked,
                              absl::StatusOr<T> (*decode)(std::string_view bytes))
      ABSL_LOCKS_EXCLUDED(write_mutex_);
  // What is damaged is deleted.
  template <typename T>
  absl::StatusOr<T> LookToWrite(EntryKind kind, const EntryKey& asked,
                                absl::StatusOr<T> (*decode)(std::string_view bytes))
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::StatusOr<StoredPlan> PlanToPin(const Digest& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  template <typename T>
  std::shared_ptr<const T> Read(EntryKind kind, const EntryKey& asked,
                                absl::StatusOr<T> (*decode)(std::string_view bytes));
  template <typename T>
  Found<T> Get(EntryKind kind, const EntryKey& asked,
               absl::StatusOr<T> (*decode)(std::string_view bytes));

  const RocksStoreOptions options_;
  const std::shared_ptr<RocksDatabase> database_;
  Logger& logger_;
  const Clock& clock_;

  // Held from choosing by the index to telling it what was written, so that index and database
  // agree whenever nobody holds it. Taken before mutex_, which readers need and which is therefore
  // never held during a write.
  Mutex write_mutex_;
  mutable Mutex mutex_;
  EvictionIndex index_ ABSL_GUARDED_BY(mutex_);
  int64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t write_failures_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable bool writable_ ABSL_GUARDED_BY(mutex_) = true;  // as it was last logged
};

}  // namespace fusion
