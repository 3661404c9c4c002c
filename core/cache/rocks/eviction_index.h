#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/cache/store.h"

namespace fusion {

/// Names one entry of a store.
struct EntryId {
  EntryKind kind = EntryKind::kPlan;
  Digest key;
  auto operator<=>(const EntryId&) const = default;
};

/// Facts about an entry that are known without reading it.
struct EntryFacts {
  int64_t bytes = 0;        // stored bytes
  double cost_ms = 0;       // time to make it again
  int64_t last_use_ms = 0;  // Unix time
  int64_t created_ms = 0;   // of plans: Unix time
  Digest payload;           // SHA-256 of the stored bytes
  std::string tenant = {};  // charged for it
  /// Store::ContentOf. Not stored on disk: not set until the entry is read or written.
  std::optional<Digest> content = std::nullopt;
};

/// Index of the entries of a store with their eviction order. Among the 16 least recently used
/// entries it evicts the one with the smallest cost_ms / bytes / time since the last use. So
/// expensive entries stay longer, but none stays for ever (hyperbolic caching: Blankstein et al.,
/// USENIX ATC 2017). Pinned plans and their kernels are never evicted. Not thread-safe.
class EvictionIndex {
 public:
  using Entry = std::pair<EntryId, EntryFacts>;

  /// Adds or replaces.
  void Add(const EntryId& id, const EntryFacts& facts);
  /// Bulk loading, when a store is opened: AddInOrder for each entry, in ascending order of ids,
  /// then FinishAdding once. Faster than Add. Nothing is evicted before FinishAdding.
  void AddInOrder(const EntryId& id, const EntryFacts& facts);
  void FinishAdding();
  /// False if absent.
  bool Remove(const EntryId& id);
  /// Records a use. No effect if absent.
  void Touch(const EntryId& id, int64_t now_ms);
  /// Sets EntryFacts::content after a read. No effect if the entry is absent or its content is
  /// known: the entry may have been replaced since the read.
  void NoteContent(const EntryId& id, const Digest& content);
  /// Null if absent; valid until the next change.
  const EntryFacts* Find(const EntryId& id) const;

  /// If `incoming_bytes` more would exceed `budget_bytes`, removes entries until they fit, and then
  /// more, until a tenth of the budget is spare or 256 entries are removed. Returns the removed
  /// entries. Never removes one of `keep`. May free too little, if the rest is pinned or kept:
  /// compare bytes() with the budget afterwards.
  std::vector<Entry> MakeRoom(int64_t incoming_bytes, int64_t budget_bytes,
                              const std::set<EntryId>& keep);
  /// As MakeRoom, for the entries charged to one tenant and the tenant's budget.
  std::vector<Entry> MakeTenantRoom(const std::string& tenant, int64_t incoming_bytes,
                                    int64_t budget_bytes, const std::set<EntryId>& keep);

  /// Exempts the plan and these kernels from eviction, also if they are added later. Replaces an
  /// earlier pin of the plan.
  void Pin(const Digest& plan, std::vector<Digest> kernels);
  /// False if it was not pinned.
  bool Unpin(const Digest& plan);
  bool IsPinned(const EntryId& id) const;
  /// The number of kernels of a pinned plan that are absent. 0 if the plan is not pinned.
  int64_t MissingOf(const Digest& plan) const;
  /// The number of pinned plans in the index, and the bytes of them and their kernels.
  int64_t pinned_plans() const { return pinned_plans_; }
  int64_t pinned_bytes() const { return pinned_bytes_; }
  /// Bytes charged to each tenant.
  const std::map<std::string, int64_t>& tenant_bytes() const { return tenant_bytes_; }
  int64_t TenantBytes(const std::string& tenant) const;
  /// All entries, ordered by kind and key.
  const std::map<EntryId, EntryFacts>& entries() const { return entries_; }

  /// Entries whose use time changed since they were added or last returned here; at most `limit`.
  /// For writing use times to disk.
  std::vector<Entry> TakeTouched(size_t limit);

  /// The plans, newest first.
  const PlanPlaces& places() const { return places_; }

  /// Total number of removed and replaced entries.
  int64_t removals() const { return removals_; }
  int64_t bytes() const { return bytes_; }
  int64_t plans() const { return static_cast<int64_t>(places_.size()); }
  int64_t kernels() const { return static_cast<int64_t>(entries_.size()) - plans(); }

 private:
  using Age = std::pair<int64_t, EntryId>;  // time of the last use

  // Evictable entries: all (null), or those of one tenant.
  const std::set<Age>& Ages(const std::string* tenant) const;
  // As MakeRoom, for a total of `wanted_bytes`.
  std::vector<Entry> Evict(int64_t wanted_bytes, int64_t budget_bytes, const std::string* tenant,
                           const std::set<EntryId>& keep);
  // True if the entry is evictable.
  bool AddEntry(const EntryId& id, const EntryFacts& facts);
  // Makes an entry evictable, or no longer evictable.
  void Enter(const EntryId& id, const EntryFacts& facts);
  void Leave(const EntryId& id, const EntryFacts& facts);
  // Counts an entry, if present, as pinned (+1) or as no longer pinned (-1).
  void Count(const EntryId& id, int sign);

  std::map<EntryId, EntryFacts> entries_;
  std::set<Age> by_age_;  // evictable entries
  // The same by tenant, so that eviction for a small tenant does not scan all entries.
  std::map<std::string, std::set<Age>> by_tenant_;
  std::map<Digest, std::vector<Digest>> pins_;  // plan to its kernels
  std::map<Digest, int> pinned_kernels_;        // number of pinned plans that need the kernel
  int64_t pinned_plans_ = 0;
  int64_t pinned_bytes_ = 0;
  std::map<std::string, int64_t> tenant_bytes_;
  std::set<EntryId> touched_;
  PlanPlaces places_;
  int64_t bytes_ = 0;
  int64_t removals_ = 0;
  int64_t newest_use_ms_ = 0;  // ages are relative to this
};

}  // namespace fusion
