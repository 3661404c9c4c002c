#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "core/cache/record_store.h"
#include "core/cache/rocks/eviction_index.h"
#include "core/cache/rocks/store_lock.h"
#include "core/cache/store.h"

namespace rocksdb {
class WriteBatch;
}  // namespace rocksdb

namespace fusion {

class RocksDatabase;

struct RocksStoreOptions {
  /// Directory of the database; created if absent. The file `<dir>.lock` excludes other processes.
  std::string dir;
  /// Logical bytes of plans and kernels. The directory occupies at most three times that plus 192
  /// MiB (server/README.md, "The store").
  int64_t budget_bytes = int64_t{4} << 30;
  /// Maximum of these bytes for one tenant (Bundle::tenant); 0: no limit. Empty: no tenant has one.
  std::function<int64_t(const std::string& tenant)> tenant_budget;
  /// Memory for table blocks (keys, plans). Kernels are cached by the page cache and by
  /// MemoryStore.
  int64_t block_cache_bytes = int64_t{64} << 20;
  /// Writes fail if less space is free: RocksDB needs space to recover from a full disk.
  int64_t min_free_bytes = int64_t{256} << 20;
  /// Returns the free bytes of the file system of a directory. Empty: statvfs.
  std::function<absl::StatusOr<int64_t>(const std::string& dir)> free_bytes;
  /// Opens an existing database read-only: for a disk without space for a normal open.
  bool read_only = false;
  /// Result of LockStore(dir), if the caller has locked it already. Null: Open locks it.
  StoreLock lock = nullptr;
};

/// Plans and kernels on disk, in RocksDB.
///
///   ASSIGN_OR_RETURN(auto disk, RocksStore::Open({.dir = "store"}, logger));
///
/// A bundle is one synced write batch: after kill -9 or a crash of the machine all of it is stored
/// or nothing. Entries carry their full key and digests; a read that finds a bad entry deletes it
/// and reports a miss. If the budget is exceeded, entries are evicted in the order of
/// EvictionIndex. Use times are written with later bundles, so a crash loses the last ones. On a
/// full disk reads continue, and writes resume without a restart once there is space. To open a
/// store on a full disk use OpenDiskStores. Thread-safe. `logger` and `clock` must outlive it.
class RocksStore final : public Store {
 public:
  /// Opens or creates a store. A database of an older schema is migrated. A corrupt database is
  /// renamed to `<dir>.corrupt-<Unix seconds>`, which is logged, and an empty one is created. With
  /// `read_only` the database must exist, be undamaged and have the current schema.
  /// FailedPrecondition: another process (or this one) has the store open, or its schema is newer;
  /// it is not changed. ResourceExhausted: no space. Unavailable: the directory cannot be used.
  /// InvalidArgument: no directory given.
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
  /// Logs changes of the result. Tries to resume writing if it failed.
  absl::Status CheckWritable() const override;
  absl::Status PutBundle(const Bundle& bundle) override;
  PlanPage ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                       size_t limit) override;
  std::vector<StoreStats> Stats() const override;
  std::shared_ptr<const KernelArtifact> PeekKernel(const Digest& key) override;
  std::string TenantOf(const Digest& plan) const override;
  bool IsPinned(const Digest& plan) const override;
  absl::StatusOr<PinOutcome> SetPinned(const std::vector<Digest>& plans, bool pinned) override;
  absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) override;
  absl::StatusOr<StoreCheck> Verify(const CancelToken& cancel) override;
  absl::StatusOr<StoreCompaction> Compact(const CancelToken& cancel) override;
  DiskFacts Facts() const override;
  std::map<std::string, int64_t> TenantBytes() const override;
  int64_t CachedBytes() const override;

  /// Opens the records of a kind (PlanMeasurements, KernelTimings) in the same database, at most
  /// `budget_bytes` of them. Call it at most once for each kind. The result may outlive the store.
  template <typename Record>
  std::unique_ptr<RecordStore<Record>> OpenRecords(int64_t budget_bytes = int64_t{64} << 20);

  /// True if Open found a damaged database and renamed it.
  bool started_empty_after_damage() const;

 private:
  // Limit for pinned entries, as a share of the budget: the rest is left for new plans.
  static constexpr int64_t kPinnedQuarters = 3;
  int64_t MostPinned() const { return options_.budget_bytes / 4 * kPinnedQuarters; }

  // Bytes that a bundle adds: in all, charged to its tenant, and newly pinned.
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
  // As Look; deletes a damaged entry.
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

  // Held from a decision based on the index until the index reflects what was written. So index and
  // database agree whenever it is free. Acquired before mutex_. Readers need mutex_, so it is never
  // held during a write.
  Mutex write_mutex_;
  mutable Mutex mutex_;
  EvictionIndex index_ ABSL_GUARDED_BY(mutex_);
  int64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t write_failures_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable bool writable_ ABSL_GUARDED_BY(mutex_) = true;  // as last logged
};

}  // namespace fusion
