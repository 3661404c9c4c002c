#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/base/threads/cancel.h"
#include "core/bundle/report.h"
#include "core/cache/store_upkeep.h"
#include "core/wire/stored_plan.h"

namespace fusion {

enum class EntryKind : uint8_t { kPlan, kKernel };
/// The tier that had an entry; kNone: a miss.
enum class Tier : uint8_t { kNone, kMemory, kDisk };

/// "plan", "kernel".
std::string_view EntryKindName(EntryKind kind);
/// "none", "memory", "disk".
std::string_view TierName(Tier tier);

/// Names the entry to read. A stored entry matches only if its full key is `full_key`, so a hash
/// collision is a miss. If `full_key` is empty (a client names kernels by digest), the entry's own
/// full key must hash to `digest`.
struct EntryKey {
  Digest digest;
  std::string_view full_key = {};  // not owned
};

template <typename T>
struct Found {
  std::shared_ptr<const T> value;  // null: a miss
  Tier tier = Tier::kNone;
  explicit operator bool() const { return value != nullptr; }
};

/// Entries that are published together: a plan with kernels, or only kernels (`plan` null).
struct Bundle {
  std::shared_ptr<const StoredPlan> plan;
  std::vector<std::shared_ptr<const KernelArtifact>> kernels;
  /// Charged for the entries that are not stored yet. Existing entries keep their tenant.
  std::string tenant = {};
};

/// State of one tier. Counters start at 0 when the process starts.
struct StoreStats {
  Tier tier = Tier::kNone;
  int64_t plans = 0;
  int64_t kernels = 0;
  int64_t bytes = 0;            // of all entries
  int64_t limit_bytes = 0;      // budget for `bytes`; INT64_MAX: unlimited
  int64_t disk_bytes = 0;       // occupied on disk, garbage included; 0 for memory
  int64_t evicted = 0;          // entries removed to free space
  int64_t dropped = 0;          // bad entries that a read found and deleted
  int64_t write_failures = 0;   // calls of PutBundle that failed
  int64_t unwritten_plans = 0;  // plans only in memory that will be written later (LateWriter)
  int64_t pinned_plans = 0;     // stored plans that are exempt from eviction
  int64_t pinned_bytes = 0;     // of these and their kernels
  bool writable = true;         // false: writes currently fail; reads work
  std::string not_writable;     // the reason, if not writable
};

/// Position of a plan in the listing order: newest first, then by key.
struct PlanPlace {
  int64_t created_unix_ms = 0;
  Digest key;
  bool operator==(const PlanPlace&) const = default;
  friend bool operator<(const PlanPlace& a, const PlanPlace& b) {
    if (a.created_unix_ms != b.created_unix_ms) return a.created_unix_ms > b.created_unix_ms;
    return a.key < b.key;
  }
};
using PlanPlaces = std::set<PlanPlace>;

/// One page of a list of plans.
struct PlanPage {
  std::vector<PlanSummary> plans;
  std::optional<PlanPlace> last;  // pass as `after` for the next page; not set: no more pages
};

/// Selects the plans to list.
struct PlanFilter {
  /// Plans of this tenant and plans without a known tenant. Not set: all.
  std::optional<std::string> tenant = std::nullopt;
  /// Of these, the plans for whose full key it returns true. Empty: all.
  std::function<bool(std::string_view full_key)> shows = nullptr;

  bool Shows(const StoredPlan& plan) const { return !shows || shows(plan.full_key); }
};

/// Plans and kernels by key. Implementations are stacked:
///
///   MeteredStore(TieredStore(MemoryStore(256 MiB), RocksStore::Open(...)))
///
///   if (Found<StoredPlan> hit = store.GetPlan({key, full_key})) return Reply(*hit.value);
///
/// A read never fails and never returns a wrong entry. Missing and damaged entries, and those with
/// another full key, are misses; damaged ones are logged, counted and deleted. Values are shared
/// and immutable. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  virtual Found<StoredPlan> GetPlan(const EntryKey& key) = 0;
  virtual Found<KernelArtifact> GetKernel(const EntryKey& key) = 0;

  /// Reads a plan without side effects: does not count as a use for eviction or metrics, and copies
  /// nothing between tiers. Null if absent.
  virtual std::shared_ptr<const StoredPlan> PeekPlan(const Digest& key) = 0;
  /// Looks up the index only, without reading the entry. So a listed entry may still be damaged.
  virtual bool HasPlan(const Digest& key) const = 0;
  virtual bool HasKernel(const Digest& key) const = 0;

  /// SHA-256 of an entry's bytes as clients receive them: of the plan, of the shared object.
  /// nullopt: the entry is absent, or its content is not known without reading it. Reads nothing.
  /// The bytes of a key may change. So a cache of values derived from an entry must store this
  /// digest with them, and compare it before each use.
  virtual std::optional<Digest> ContentOf(EntryKind kind, const Digest& key) const = 0;

  /// Records a use of a plan and these kernels, for eviction, without reading them. False if one of
  /// them is absent; then the use may be recorded for some, all or none of the others.
  virtual bool Touch(const Digest& plan, const std::vector<Digest>& kernels) = 0;
  /// A counter of removed and replaced entries. As long as it does not change, entries found before
  /// are still stored.
  virtual int64_t removals() const = 0;

  /// Publishes all entries of `bundle` or none. On OK it is durable, if the store has a disk. On an
  /// error the caller may still use the bundle; it is just not cached. ResourceExhausted: no space.
  /// Unavailable: I/O error. DataLoss: the database is damaged. FailedPrecondition: the store is
  /// read-only. Internal: a digest in `bundle` is wrong, a bug of the caller.
  virtual absl::Status PutBundle(const Bundle& bundle) = 0;

  /// An error, as of PutBundle, if no bundle can be written now. Cheap.
  virtual absl::Status CheckWritable() const { return absl::OkStatus(); }

  /// Why a published plan is not durable yet. Empty: it is durable, or absent. The answer changes
  /// without a further call when the plan is written in the background.
  virtual std::string WhyUnwritten(const Digest& /*plan*/) const { return {}; }

  /// Lists at most `limit` plans after `after` (not set: from the start), from the most durable
  /// tier. A page may have fewer plans, even none, if plans are large or `filter` rejects many;
  /// `last` is set nevertheless if there are more. Reads plans without counting as a use. Deletes
  /// and omits damaged ones.
  virtual PlanPage ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                               size_t limit) = 0;
  /// As ListPlansOf, without a filter.
  PlanPage ListPlans(const std::optional<PlanPlace>& after, size_t limit) {
    return ListPlansOf({}, after, limit);
  }

  /// One per tier, nearest first.
  virtual std::vector<StoreStats> Stats() const = 0;

  // Maintenance. Operations that need a disk fail with FailedPrecondition if there is none.

  /// As PeekPlan, for a kernel.
  virtual std::shared_ptr<const KernelArtifact> PeekKernel(const Digest& key) = 0;
  /// The tenant that is charged for a plan. Empty: no tenant, or the plan is not stored.
  virtual std::string TenantOf(const Digest& /*plan*/) const { return {}; }
  /// Whether a plan is pinned (SetPinned).
  virtual bool IsPinned(const Digest& /*plan*/) const { return false; }
  /// Exempts plans and their kernels from eviction, or ends that. Survives a restart. Kernels that
  /// are absent are pinned once they are published. On an error nothing is changed. NotFound,
  /// naming the first plan that is not stored. ResourceExhausted: more than three quarters of the
  /// budget would be pinned. DataLoss: a plan was damaged and is dropped. Else as PutBundle.
  virtual absl::StatusOr<PinOutcome> SetPinned(const std::vector<Digest>& plans, bool pinned);
  /// Deletes entries, including pinned ones. Fails as PutBundle; then some may be deleted.
  virtual absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) = 0;
  /// Reads every entry and compares the checksum of every file. Deletes damaged entries; entries
  /// that currently cannot be read are reported as damage and kept. kCancelled or kDeadlineExceeded
  /// if `cancel` ends it.
  virtual absl::StatusOr<StoreCheck> Verify(const CancelToken& cancel);
  /// Rewrites all files without deleted data. Other calls may run concurrently. ResourceExhausted:
  /// no space for the copy, which is as large as the largest column family. kCancelled or
  /// kDeadlineExceeded if `cancel` ends it. Else as PutBundle.
  virtual absl::StatusOr<StoreCompaction> Compact(const CancelToken& cancel);
  /// The directory on disk; default values without one.
  virtual DiskFacts Facts() const { return {}; }
  /// Bytes charged to each tenant. A shared entry is charged to the tenant that published it first.
  /// Empty without a disk.
  virtual std::map<std::string, int64_t> TenantBytes() const { return {}; }

  /// Bytes of process memory that the store uses as a cache and could release. Cheap.
  virtual int64_t CachedBytes() const = 0;
  /// Evicts the least recently used entries from memory; a quarter of the limit stays. Entries that
  /// are on disk too are read from there again. Others are evicted as by a full memory store.
  virtual void TrimMemory() {}
};

/// Why an entry with `key` and `full_key` does not match `asked`; empty if it does.
std::string WhyNotTheEntry(const EntryKey& asked, const Digest& key, std::string_view full_key);

/// Internal unless every key in `bundle` is the digest of its full key, and KernelArtifact::content
/// that of the binary. StoredPlan::content is not checked.
absl::Status CheckBundle(const Bundle& bundle);

/// The first places after `after` for which `is_wanted`, at most `limit`, and the start of the next
/// page (`last`; not set: no more). Examines at most kLookedAtPlaces places, so that it may be
/// called with a lock held. Chosen: about a millisecond.
inline constexpr size_t kLookedAtPlaces = 4096;
struct PlacePage {
  std::vector<PlanPlace> places;
  std::optional<PlanPlace> last;
};
PlacePage PlacesAfter(const PlanPlaces& places, const std::optional<PlanPlace>& after, size_t limit,
                      const std::function<bool(const PlanPlace&)>& is_wanted);

/// Summary of a stored plan, without `pinned` and `tenant`. `is_stored`: whether a kernel is
/// stored.
PlanSummary Summarise(const StoredPlan& stored,
                      const std::function<bool(const Digest& kernel)>& is_stored);

inline const Digest& ContentOf(const StoredPlan& plan) { return plan.content; }
inline const Digest& ContentOf(const KernelArtifact& kernel) { return kernel.content; }

/// Bytes that an entry counts against the budget of a MemoryStore.
int64_t ChargedBytes(const StoredPlan& plan);
int64_t ChargedBytes(const KernelArtifact& kernel);

}  // namespace fusion
