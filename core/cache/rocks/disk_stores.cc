#include "core/cache/rocks/disk_stores.h"

#include "core/cache/memory/memory_records.h"
#include "core/cache/memory/memory_store.h"

namespace fusion {
namespace {

// Attempts are cheap: on a full disk they fail at the first file.
constexpr Nanoseconds kReopenPause = std::chrono::seconds(1);

// Stores that could not be opened for writing. Replaces them once they can. Thread-safe.
class LateDisk {
 public:
  // The current stores. A copy keeps them open.
  struct Now {
    std::shared_ptr<Store> store;
    std::shared_ptr<MeasurementStore> measurements;
    std::shared_ptr<TimingStore> timings;
    absl::Status writable;
    int64_t removals_before = 0;  // of the stores before these
    int64_t refused = 0;          // rejected bundles
  };

  LateDisk(RocksStoreOptions options, OpenDisk open, absl::Status why, Logger& logger,
           const Clock& clock)
      : options_(std::move(options)),
        open_(std::move(open)),
        logger_(logger),
        clock_(clock),
        next_try_(clock.Now() + kReopenPause) {
    absl::StatusOr<DiskStores> readable = open_(/*read_only=*/true);
    logger_.Error("store_not_writable",
                  {{"dir", options_.dir},
                   {"reason", Message(why)},
                   {"now", readable.ok() ? "it is only read" : "nothing of it is read"},
                   {"why_not_read", Message(readable.status())}});
    if (!readable.ok()) readable = Nothing();
    now_.store = std::move(readable->store);
    now_.measurements = std::move(readable->measurements);
    now_.timings = std::move(readable->timings);
    now_.writable = std::move(why);
  }

  Now Look() const {
    MutexLock lock(&mutex_);
    return now_;
  }
  // As Look, after an attempt to open them for writing, at most one per kReopenPause.
  Now TryAndLook() {
    if (BeginTry()) Try();
    return Look();
  }
  absl::Status Refuse(absl::Status why) {
    MutexLock lock(&mutex_);
    ++now_.refused;
    return why;
  }
  const RocksStoreOptions& options() const { return options_; }

 private:
  DiskStores Nothing() const {
    return {.store = std::make_unique<MemoryStore>(0, logger_),
            .measurements = std::make_unique<MemoryMeasurements>(0),
            .timings = std::make_unique<MemoryTimings>(0)};
  }

  bool BeginTry() {
    MutexLock lock(&mutex_);
    if (now_.writable.ok() || trying_ || clock_.Now() < next_try_) return false;
    trying_ = true;
    return true;
  }

  void Try() {
    absl::StatusOr<DiskStores> opened = open_(/*read_only=*/false);
    Now before;  // closed after the lock is released, when the last reader is done
    MutexLock lock(&mutex_);
    trying_ = false;
    next_try_ = clock_.Now() + kReopenPause;
    if (!opened.ok()) {
      now_.writable = opened.status();
      return;
    }
    before = std::exchange(now_, {.store = std::move(opened->store),
                                  .measurements = std::move(opened->measurements),
                                  .timings = std::move(opened->timings),
                                  .writable = absl::OkStatus(),
                                  .removals_before = now_.removals_before,
                                  .refused = now_.refused});
    now_.removals_before += before.store->removals() + 1;
    logger_.Info("store_writable", {{"writable", true}, {"reason", "it was opened anew"}});
  }

  const RocksStoreOptions options_;
  const OpenDisk open_;
  Logger& logger_;
  const Clock& clock_;
  mutable Mutex mutex_;
  Now now_ ABSL_GUARDED_BY(mutex_);
  bool trying_ ABSL_GUARDED_BY(mutex_) = false;
  Nanoseconds next_try_ ABSL_GUARDED_BY(mutex_);
};

class LateStore final : public Store {
 public:
  explicit LateStore(std::shared_ptr<LateDisk> disk) : disk_(std::move(disk)) {}

  Found<StoredPlan> GetPlan(const EntryKey& key) override { return now()->GetPlan(key); }
  Found<KernelArtifact> GetKernel(const EntryKey& key) override { return now()->GetKernel(key); }
  std::shared_ptr<const StoredPlan> PeekPlan(const Digest& key) override {
    return now()->PeekPlan(key);
  }
  bool HasPlan(const Digest& key) const override { return now()->HasPlan(key); }
  bool HasKernel(const Digest& key) const override { return now()->HasKernel(key); }
  std::optional<Digest> ContentOf(EntryKind kind, const Digest& key) const override {
    return now()->ContentOf(kind, key);
  }
  bool Touch(const Digest& plan, const std::vector<Digest>& kernels) override {
    return now()->Touch(plan, kernels);
  }
  int64_t removals() const override {
    const LateDisk::Now now = disk_->Look();
    return now.removals_before + now.store->removals();
  }
  absl::Status PutBundle(const Bundle& bundle) override {
    const LateDisk::Now now = disk_->TryAndLook();
    return now.writable.ok() ? now.store->PutBundle(bundle) : disk_->Refuse(now.writable);
  }
  absl::Status CheckWritable() const override {
    const LateDisk::Now now = disk_->TryAndLook();
    return now.writable.ok() ? now.store->CheckWritable() : now.writable;
  }
  PlanPage ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                       size_t limit) override {
    return now()->ListPlansOf(filter, after, limit);
  }
  std::vector<StoreStats> Stats() const override {
    const LateDisk::Now now = disk_->TryAndLook();
    std::vector<StoreStats> stats = now.store->Stats();
    stats[0].tier = Tier::kDisk;
    stats[0].limit_bytes = disk_->options().budget_bytes;
    stats[0].write_failures += now.refused;
    if (now.writable.ok()) return stats;
    stats[0].writable = false;
    stats[0].not_writable = Message(now.writable);
    return stats;
  }
  std::shared_ptr<const KernelArtifact> PeekKernel(const Digest& key) override {
    return now()->PeekKernel(key);
  }
  std::string TenantOf(const Digest& plan) const override { return now()->TenantOf(plan); }
  absl::StatusOr<PinOutcome> SetPinned(const std::vector<Digest>& plans, bool pinned) override {
    const LateDisk::Now now = disk_->TryAndLook();
    RETURN_IF_ERROR(now.writable);
    return now.store->SetPinned(plans, pinned);
  }
  absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) override {
    const LateDisk::Now now = disk_->TryAndLook();
    RETURN_IF_ERROR(now.writable);
    return now.store->Forget(query);
  }
  absl::StatusOr<StoreCheck> Verify(const CancelToken& cancel) override {
    return now()->Verify(cancel);
  }
  absl::StatusOr<StoreCompaction> Compact(const CancelToken& cancel) override {
    const LateDisk::Now now = disk_->TryAndLook();
    RETURN_IF_ERROR(now.writable);
    return now.store->Compact(cancel);
  }
  DiskFacts Facts() const override {
    DiskFacts facts = now()->Facts();
    facts.dir = disk_->options().dir;
    facts.min_free_bytes = disk_->options().min_free_bytes;
    return facts;
  }
  std::map<std::string, int64_t> TenantBytes() const override { return now()->TenantBytes(); }
  int64_t CachedBytes() const override { return now()->CachedBytes(); }
  void TrimMemory() override { now()->TrimMemory(); }

 private:
  std::shared_ptr<Store> now() const { return disk_->Look().store; }

  const std::shared_ptr<LateDisk> disk_;
};

// The records of `store` in LateDisk::Now.
template <typename Record, std::shared_ptr<RecordStore<Record>> LateDisk::Now::*store>
class LateRecords final : public RecordStore<Record> {
 public:
  explicit LateRecords(std::shared_ptr<LateDisk> disk) : disk_(std::move(disk)) {}

  std::optional<Record> Get(const Digest& key) override { return now()->Get(key); }
  absl::Status Put(const Digest& key, const Record& record) override {
    const LateDisk::Now now = disk_->TryAndLook();
    RETURN_IF_ERROR(now.writable);
    return (now.*store)->Put(key, record);
  }
  void Remove(const Digest& key) override { now()->Remove(key); }
  std::vector<Digest> Keys() const override { return now()->Keys(); }
  RecordStats Stats() const override { return now()->Stats(); }

 private:
  std::shared_ptr<RecordStore<Record>> now() const { return disk_->Look().*store; }

  const std::shared_ptr<LateDisk> disk_;
};

using LateMeasurements = LateRecords<PlanMeasurements, &LateDisk::Now::measurements>;
using LateTimings = LateRecords<KernelTimings, &LateDisk::Now::timings>;

}  // namespace

absl::StatusOr<DiskStores> OpenDiskStores(const RocksStoreOptions& options, OpenDisk open,
                                          Logger& logger, const Clock& clock) {
  absl::StatusOr<DiskStores> opened = open(/*read_only=*/false);
  if (!absl::IsResourceExhausted(opened.status())) return opened;
  auto disk = std::make_shared<LateDisk>(options, std::move(open), opened.status(), logger, clock);
  return DiskStores{.store = std::make_unique<LateStore>(disk),
                    .measurements = std::make_unique<LateMeasurements>(disk),
                    .timings = std::make_unique<LateTimings>(disk)};
}

absl::StatusOr<DiskStores> OpenDiskStores(RocksStoreOptions options, Logger& logger,
                                          const Clock& clock) {
  // The lock is held from the first attempt on, also if it fails. Attempts do not run concurrently.
  auto open = [options, &logger, &clock](bool read_only) mutable -> absl::StatusOr<DiskStores> {
    if (options.lock == nullptr) {
      ASSIGN_OR_RETURN(options.lock, LockStore(options.dir));
    }
    options.read_only = read_only;
    ASSIGN_OR_RETURN(std::unique_ptr<RocksStore> disk, RocksStore::Open(options, logger, clock));
    DiskStores stores;
    stores.measurements = disk->OpenRecords<PlanMeasurements>();
    stores.timings = disk->OpenRecords<KernelTimings>();
    stores.store = std::move(disk);
    return stores;
  };
  return OpenDiskStores(options, std::move(open), logger, clock);
}

}  // namespace fusion
