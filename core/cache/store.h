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
/// Where an answer came from; kNone is a miss.
enum class Tier : uint8_t { kNone, kMemory, kDisk };

/// "plan", "kernel".
std::string_view EntryKindName(EntryKind kind);
/// "none", "memory", "disk".
std::string_view TierName(Tier tier);

/// What is asked for: the digest, and the full key it was made of if the caller has it (it refers
/// to the caller's bytes). Without it (a client that names kernels by digest) an entry's own full
/// key must hash to the digest.
struct EntryKey {
  Digest digest;
  std::string_view full_key = {};
};

template <typename T>
struct Found {
  std::shared_ptr<const T> value;  // null: a miss
  Tier tier = Tier::kNone;
  explicit operator bool() const { return value != nullptr; }
};

/// What is published together: a plan and the kernels it needs, or kernels alone (`plan` null).
struct Bundle {
  std::shared_ptr<const StoredPlan> plan;
  std::vector<std::shared_ptr<const KernelArtifact>> kernels;
  /// Who is charged for what of it is not there yet.
  std::string tenant = {};
};

/// State of one tier. Counters start at 0 with the process.
struct StoreStats {
  Tier tier = Tier::kNone;
  int64_t plans = 0;
  int64_t kernels = 0;
  int64_t bytes = 0;        // of the entries
  int64_t limit_bytes = 0;  // budget of `bytes`; INT64_MAX: none
  int64_t disk_bytes = 0;   // occupied on disk, garbage included; 0 for memory
  int64_t evicted = 0;
  int64_t dropped = 0;          // bad entries that a reader met and deleted
  int64_t write_failures = 0;   // tries to write a bundle that failed
  int64_t unwritten_plans = 0;  // of them in memory alone, until they can be written
  int64_t pinned_plans = 0;     // kept whatever room is needed
  int64_t pinned_bytes = 0;     // of them and their kernels
  bool writable = true;         // false: nothing is written at present; reads go on
  std::string not_writable;     // why
};

/// The place of a plan in a list of them: newest first, then by key.
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

/// Part of a list of plans.
struct PlanPage {
  std::vector<PlanSummary> plans;
  std::optional<PlanPlace> last;  // where the next page goes on; not set: there is none
};

/// Which plans are listed.
struct PlanFilter {
  /// Those of one tenant alone, and those of which a store does not know whose they are. Not
  /// given: everybody's.
  std::optional<std::string> tenant = std::nullopt;
  /// Of them those whose full key it says yes to. Empty: all.
  std::function<bool(std::string_view full_key)> shows = nullptr;

  bool Shows(const StoredPlan& plan) const { return !shows || shows(plan.full_key); }
};

/// Plans and kernels by key. Implementations are stacked:
///
///   MeteredStore(TieredStore(MemoryStore(256 MiB), RocksStore::Open(...)))
///
///   if (FoundPlan hit = store.GetPlan({key, full_key})) return Reply(*hit.value);
///
/// A read never fails and never gives a wrong entry: whatever is missing, damaged or belongs to
/// another full key is a miss; damage is logged, counted and deleted. Values are shared and
/// immutable. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  virtual Found<StoredPlan> GetPlan(const EntryKey& key) = 0;
  virtual Found<KernelArtifact> GetKernel(const EntryKey& key) = 0;

  /// A plan, or null: for a look at it. That is no use: the plan is not kept longer, copied to no
  /// other tier and counted nowhere.
  virtual std::shared_ptr<const StoredPlan> PeekPlan(const Digest& key) = 0;
  /// Whether a plan or a kernel is listed; reads nothing. True also of one that turns out to be
  /// damaged.
  virtual bool HasPlan(const Digest& key) const = 0;
  virtual bool HasKernel(const Digest& key) const = 0;

  /// SHA-256 of what clients get of an entry: of a plan's bytes, of a kernel's shared object.
  /// nullopt: it is not there, or this cannot be told without reading it. Reads nothing. Who keeps
  /// something that was made of an entry keeps this too, and looks again before he uses it: a key
  /// may come to stand for other bytes.
  virtual std::optional<Digest> ContentOf(EntryKind kind, const Digest& key) const = 0;

  /// Notes a use of a plan and its kernels, without reading them; false if one of them is not
  /// there, and then for some none may be noted.
  virtual bool Touch(const Digest& plan, const std::vector<Digest>& kernels) = 0;
  /// Grows whenever an entry goes, or another one comes in its place: while it stays the same, what
  /// was there is.
  virtual int64_t removals() const = 0;

  /// Publishes all of `bundle` or nothing; durable when it returns OK. An error leaves the caller
  /// with a correct answer that is merely not remembered: ResourceExhausted (space), Unavailable
  /// (I/O), Internal (`bundle` contradicts its own digests: a bug of the caller).
  virtual absl::Status PutBundle(const Bundle& bundle) = 0;

  /// Unavailable, ResourceExhausted: a bundle would not be written now, whatever it is. Quick.
  virtual absl::Status CheckWritable() const { return absl::OkStatus(); }

  /// Why a plan that was published is not durable; empty: it is, or is not there. The answer may
  /// change by itself, once it can be written.
  virtual std::string WhyUnwritten(const Digest& /*plan*/) const { return {}; }

  /// At most `limit` plans behind `after` (not given: from the start), of the store that keeps
  /// longest. Fewer, or none, if those are large or many are left out by `filter`, and then with
  /// `last` set all the same. Reads them, but is no use of them: what is listed is not kept longer.
  /// Damaged ones are deleted and left out.
  virtual PlanPage ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                               size_t limit) = 0;
  /// Of everybody.
  PlanPage ListPlans(const std::optional<PlanPlace>& after, size_t limit) {
    return ListPlansOf({}, after, limit);
  }

  /// One per tier, nearest first.
  virtual std::vector<StoreStats> Stats() const = 0;

  // For its operator. What needs a disk fails with FailedPrecondition where there is none.

  /// A kernel, or null: as PeekPlan.
  virtual std::shared_ptr<const KernelArtifact> PeekKernel(const Digest& key) = 0;
  /// Who is charged for a plan; empty: nobody in particular, or it is not stored.
  virtual std::string TenantOf(const Digest& /*plan*/) const { return {}; }
  /// Keeps plans and their kernels whatever room is needed, or no longer; survives a restart.
  /// NotFound, naming the first that is not stored: then none is changed. ResourceExhausted: more
  /// than three quarters of the budget would be pinned. Kernels that are not there are kept from
  /// when they are published.
  virtual absl::StatusOr<PinOutcome> SetPinned(const std::vector<Digest>& plans, bool pinned);
  /// Deletes entries, pinned ones too. Unavailable, ResourceExhausted: as PutBundle.
  virtual absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) = 0;
  /// Reads every entry and every file. Drops bad entries, as a reader would; what cannot be read at
  /// present is named among what is damaged, and kept.
  virtual absl::StatusOr<StoreCheck> Verify(const CancelToken& cancel);
  /// Writes all files anew without what was deleted; other calls go on meanwhile.
  virtual absl::StatusOr<StoreCompaction> Compact(const CancelToken& cancel);
  virtual DiskFacts Facts() const { return {}; }
  /// Bytes of each tenant's entries; what tenants share is charged to the first. Empty without a
  /// disk.
  virtual std::map<std::string, int64_t> TenantBytes() const { return {}; }

  /// Of this process's memory, what it keeps to be faster and can do without. Quick.
  virtual int64_t CachedBytes() const = 0;
};

/// Empty if an entry with `key` and `full_key` is what was asked for, else why not.
std::string WhyNotTheEntry(const EntryKey& asked, const Digest& key, std::string_view full_key);

/// Internal unless every digest in `bundle` is the digest of its bytes.
absl::Status CheckBundle(const Bundle& bundle);

/// At most `limit` of the places behind `after` that `is_wanted`, and where the next page goes on;
/// not set: nowhere. Looks at kLookedAtPlaces at most: whoever holds a lock may. Chosen: about a
/// millisecond.
inline constexpr size_t kLookedAtPlaces = 4096;
struct PlacePage {
  std::vector<PlanPlace> places;
  std::optional<PlanPlace> last;
};
PlacePage PlacesAfter(const PlanPlaces& places, const std::optional<PlanPlace>& after, size_t limit,
                      const std::function<bool(const PlanPlace&)>& is_wanted);

/// A plan in short; `is_stored` says whether a kernel is stored compiled.
PlanSummary Summarise(const StoredPlan& stored,
                      const std::function<bool(const Digest& kernel)>& is_stored);

inline const Digest& ContentOf(const StoredPlan& plan) { return plan.content; }
inline const Digest& ContentOf(const KernelArtifact& kernel) { return kernel.content; }

/// Bytes of memory an entry is charged.
int64_t ChargedBytes(const StoredPlan& plan);
int64_t ChargedBytes(const KernelArtifact& kernel);

}  // namespace fusion
