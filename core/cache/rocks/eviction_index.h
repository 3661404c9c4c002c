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

/// What eviction must know about an entry without reading it.
struct EntryFacts {
  int64_t bytes = 0;
  double cost_ms = 0;       // what making it again takes
  int64_t last_use_ms = 0;  // Unix time
  int64_t created_ms = 0;   // of plans: Unix time
  Digest payload;           // SHA-256 of the stored bytes
  std::string tenant = {};  // who is charged for it
  /// Store::ContentOf. Not kept on disk: not set until somebody reads or writes the entry.
  std::optional<Digest> content = std::nullopt;
};

/// Which entries a store holds and which of them go first: of the few used longest ago, the one
/// of which making it again costs least, per byte it frees and per time it has not been used. So
/// what was dear stays longer, but nothing stays for ever (hyperbolic caching: Blankstein et al.,
/// USENIX ATC 2017). Pinned plans and their kernels never go. Not thread-safe.
class EvictionIndex {
 public:
  using Entry = std::pair<EntryId, EntryFacts>;

  /// Adds or replaces.
  void Add(const EntryId& id, const EntryFacts& facts);
  /// For a store that is opened: Add of each new entry, in the order of their ids, and in the end
  /// once of them all what would take longest one by one.
  void AddInOrder(const EntryId& id, const EntryFacts& facts);
  void FinishAdding();
  /// False if absent.
  bool Remove(const EntryId& id);
  /// Notes a use; nothing if absent.
  void Touch(const EntryId& id, int64_t now_ms);
  /// What was read of an entry; nothing if it is absent, or known already: a reader may be late.
  void NoteContent(const EntryId& id, const Digest& content);
  /// Null if absent; valid until the next change.
  const EntryFacts* Find(const EntryId& id) const;

  /// If `incoming_bytes` more would exceed `budget_bytes`, removes entries until they do not, and
  /// then some hundred more at most until nine tenths of the budget hold everything; returns them.
  /// Never removes one of `keep`.
  std::vector<Entry> MakeRoom(int64_t incoming_bytes, int64_t budget_bytes,
                              const std::set<EntryId>& keep);
  /// The same of what one tenant is charged for, with a budget of its own.
  std::vector<Entry> MakeTenantRoom(const std::string& tenant, int64_t incoming_bytes,
                                    int64_t budget_bytes, const std::set<EntryId>& keep);

  /// From now on neither the plan nor these kernels go, be they there yet or not. Replaces what was
  /// said of the plan before.
  void Pin(const Digest& plan, std::vector<Digest> kernels);
  /// False if it was not pinned.
  bool Unpin(const Digest& plan);
  bool IsPinned(const EntryId& id) const;
  /// Kernels of a pinned plan that are not there.
  int64_t MissingOf(const Digest& plan) const;
  /// Pinned plans that are there; bytes of them and their kernels.
  int64_t pinned_plans() const { return pinned_plans_; }
  int64_t pinned_bytes() const { return pinned_bytes_; }
  /// Bytes by tenant.
  const std::map<std::string, int64_t>& tenant_bytes() const { return tenant_bytes_; }
  int64_t TenantBytes(const std::string& tenant) const;
  /// Everything, by kind and key.
  const std::map<EntryId, EntryFacts>& entries() const { return entries_; }

  /// At most `limit` entries touched since they were last returned here or added.
  std::vector<Entry> TakeTouched(size_t limit);

  /// The plans, newest first.
  const PlanPlaces& places() const { return places_; }

  /// Entries that were removed or replaced, ever.
  int64_t removals() const { return removals_; }
  int64_t bytes() const { return bytes_; }
  int64_t plans() const { return static_cast<int64_t>(places_.size()); }
  int64_t kernels() const { return static_cast<int64_t>(entries_.size()) - plans(); }

 private:
  using Age = std::pair<int64_t, EntryId>;  // last use first

  // Those that may go: of all, or of one tenant.
  const std::set<Age>& Ages(const std::string* tenant) const;
  // Removes such entries if what is wanted does not fit into the budget, or until none is left.
  std::vector<Entry> Evict(int64_t wanted_bytes, int64_t budget_bytes, const std::string* tenant,
                           const std::set<EntryId>& keep);
  bool AddEntry(const EntryId& id, const EntryFacts& facts);
  // An entry may go, or no more.
  void Enter(const EntryId& id, const EntryFacts& facts);
  void Leave(const EntryId& id, const EntryFacts& facts);
  // What is there of a pinned plan counts as pinned (+1), or no more (-1).
  void Count(const EntryId& id, int sign);

  std::map<EntryId, EntryFacts> entries_;
  std::set<Age> by_age_;  // those that may go
  // The same by tenant, so that room for a small one is not looked for among all.
  std::map<std::string, std::set<Age>> by_tenant_;
  std::map<Digest, std::vector<Digest>> pins_;  // plan to its kernels
  std::map<Digest, int> pinned_kernels_;        // to how many pinned plans need it
  int64_t pinned_plans_ = 0;
  int64_t pinned_bytes_ = 0;
  std::map<std::string, int64_t> tenant_bytes_;
  std::set<EntryId> touched_;
  PlanPlaces places_;
  int64_t bytes_ = 0;
  int64_t removals_ = 0;
  int64_t newest_use_ms_ = 0;  // by which age is told
};

}  // namespace fusion
