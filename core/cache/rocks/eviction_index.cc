#include "core/cache/rocks/eviction_index.h"

#include <algorithm>
#include <optional>

namespace fusion {
namespace {

// How many of the oldest entries compete by cost: few enough that recency still decides.
constexpr int kCandidates = 16;

double CostPerByte(const EntryFacts& facts) {
  return facts.cost_ms / static_cast<double>(facts.bytes > 0 ? facts.bytes : 1);
}

// Spare space to free beyond what is needed, so that not each new entry evicts one, and the limit
// of entries for one call, so that it does not take long. Chosen: 256 take some 2 ms.
int64_t SpareOf(int64_t budget_bytes) { return budget_bytes / 10; }
constexpr size_t kAtOnce = 256;

}  // namespace

void EvictionIndex::Add(const EntryId& id, const EntryFacts& facts) {
  Remove(id);
  if (AddEntry(id, facts)) Enter(id, facts);
}

void EvictionIndex::AddInOrder(const EntryId& id, const EntryFacts& facts) { AddEntry(id, facts); }

// Insertion in order of age appends in constant time, also with half a million entries.
void EvictionIndex::FinishAdding() {
  using Node = std::pair<const EntryId, EntryFacts>;
  std::vector<std::pair<int64_t, const Node*>> ages;
  ages.reserve(entries_.size());
  for (const Node& node : entries_) {
    if (!IsPinned(node.first)) ages.emplace_back(node.second.last_use_ms, &node);
  }
  // They are ordered by id already.
  std::stable_sort(ages.begin(), ages.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  by_age_.clear();
  by_tenant_.clear();
  for (const auto& [last_use_ms, node] : ages) Enter(node->first, node->second);
}

// True if the entry is evictable.
bool EvictionIndex::AddEntry(const EntryId& id, const EntryFacts& facts) {
  entries_.emplace_hint(entries_.end(), id, facts);
  bytes_ += facts.bytes;
  newest_use_ms_ = std::max(newest_use_ms_, facts.last_use_ms);
  tenant_bytes_[facts.tenant] += facts.bytes;
  if (id.kind == EntryKind::kPlan) places_.insert({facts.created_ms, id.key});
  const bool pinned = IsPinned(id);
  if (pinned) Count(id, 1);
  return !pinned;
}

void EvictionIndex::Enter(const EntryId& id, const EntryFacts& facts) {
  by_age_.emplace_hint(by_age_.end(), facts.last_use_ms, id);  // most are the newest
  std::set<Age>& own = by_tenant_[facts.tenant];
  own.emplace_hint(own.end(), facts.last_use_ms, id);
}

void EvictionIndex::Leave(const EntryId& id, const EntryFacts& facts) {
  by_age_.erase({facts.last_use_ms, id});
  auto tenant = by_tenant_.find(facts.tenant);
  if (tenant == by_tenant_.end()) return;
  tenant->second.erase({facts.last_use_ms, id});
  if (tenant->second.empty()) by_tenant_.erase(tenant);
}

bool EvictionIndex::Remove(const EntryId& id) {
  auto it = entries_.find(id);
  if (it == entries_.end()) return false;
  const EntryFacts& facts = it->second;
  if (IsPinned(id)) Count(id, -1);
  Leave(id, facts);
  touched_.erase(id);
  bytes_ -= facts.bytes;
  auto tenant = tenant_bytes_.find(facts.tenant);
  tenant->second -= facts.bytes;
  if (tenant->second == 0) tenant_bytes_.erase(tenant);
  if (id.kind == EntryKind::kPlan) places_.erase({facts.created_ms, id.key});
  entries_.erase(it);
  ++removals_;
  return true;
}

void EvictionIndex::Touch(const EntryId& id, int64_t now_ms) {
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.last_use_ms == now_ms) return;
  const bool may_go = !IsPinned(id);
  if (may_go) Leave(id, it->second);
  it->second.last_use_ms = now_ms;
  newest_use_ms_ = std::max(newest_use_ms_, now_ms);
  if (may_go) Enter(id, it->second);
  touched_.insert(id);
}

void EvictionIndex::NoteContent(const EntryId& id, const Digest& content) {
  auto it = entries_.find(id);
  if (it != entries_.end() && !it->second.content.has_value()) it->second.content = content;
}

bool EvictionIndex::IsPinned(const EntryId& id) const {
  return id.kind == EntryKind::kPlan ? pins_.contains(id.key) : pinned_kernels_.contains(id.key);
}

void EvictionIndex::Count(const EntryId& id, int sign) {
  auto it = entries_.find(id);
  if (it == entries_.end()) return;
  if (id.kind == EntryKind::kPlan) pinned_plans_ += sign;
  pinned_bytes_ += sign * it->second.bytes;
  if (sign > 0) {
    Leave(id, it->second);
  } else {
    Enter(id, it->second);
  }
}

void EvictionIndex::Pin(const Digest& plan, std::vector<Digest> kernels) {
  Unpin(plan);
  for (const Digest& kernel : kernels) {
    if (pinned_kernels_[kernel]++ == 0) Count({EntryKind::kKernel, kernel}, 1);
  }
  pins_.emplace(plan, std::move(kernels));
  Count({EntryKind::kPlan, plan}, 1);
}

bool EvictionIndex::Unpin(const Digest& plan) {
  auto pin = pins_.find(plan);
  if (pin == pins_.end()) return false;
  for (const Digest& kernel : pin->second) {
    auto count = pinned_kernels_.find(kernel);
    if (--count->second > 0) continue;
    pinned_kernels_.erase(count);
    Count({EntryKind::kKernel, kernel}, -1);
  }
  pins_.erase(pin);
  Count({EntryKind::kPlan, plan}, -1);
  return true;
}

int64_t EvictionIndex::MissingOf(const Digest& plan) const {
  auto pin = pins_.find(plan);
  if (pin == pins_.end()) return 0;
  return std::count_if(pin->second.begin(), pin->second.end(), [this](const Digest& kernel) {
    return Find({EntryKind::kKernel, kernel}) == nullptr;
  });
}

const EntryFacts* EvictionIndex::Find(const EntryId& id) const {
  auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

int64_t EvictionIndex::TenantBytes(const std::string& tenant) const {
  auto charged = tenant_bytes_.find(tenant);
  return charged == tenant_bytes_.end() ? 0 : charged->second;
}

std::vector<EvictionIndex::Entry> EvictionIndex::MakeRoom(int64_t incoming_bytes,
                                                          int64_t budget_bytes,
                                                          const std::set<EntryId>& keep) {
  return Evict(bytes_ + incoming_bytes, budget_bytes, /*tenant=*/nullptr, keep);
}

std::vector<EvictionIndex::Entry> EvictionIndex::MakeTenantRoom(const std::string& tenant,
                                                                int64_t incoming_bytes,
                                                                int64_t budget_bytes,
                                                                const std::set<EntryId>& keep) {
  return Evict(TenantBytes(tenant) + incoming_bytes, budget_bytes, &tenant, keep);
}

const std::set<EvictionIndex::Age>& EvictionIndex::Ages(const std::string* tenant) const {
  static const std::set<Age> kNone;
  if (tenant == nullptr) return by_age_;
  auto ages = by_tenant_.find(*tenant);
  return ages == by_tenant_.end() ? kNone : ages->second;
}

std::vector<EvictionIndex::Entry> EvictionIndex::Evict(int64_t wanted_bytes, int64_t budget_bytes,
                                                       const std::string* tenant,
                                                       const std::set<EntryId>& keep) {
  std::vector<Entry> victims;
  if (wanted_bytes <= budget_bytes) return victims;
  int64_t excess_bytes = wanted_bytes - budget_bytes;
  std::optional<Age> first;  // first candidate; entries before it are in `keep`
  while (excess_bytes + SpareOf(budget_bytes) > 0) {
    if (excess_bytes <= 0 && victims.size() >= kAtOnce) break;
    const Age* cheapest = nullptr;
    double lowest = 0;
    int seen = 0;
    const std::set<Age>& ages = Ages(tenant);  // again: removing the last entry deletes a set
    auto it = first.has_value() ? ages.lower_bound(*first) : ages.begin();
    for (; it != ages.end() && seen < kCandidates; ++it) {
      if (keep.contains(it->second)) continue;
      if (seen++ == 0) first = *it;
      const EntryFacts& facts = entries_.at(it->second);
      const double worth =
          CostPerByte(facts) / static_cast<double>(newest_use_ms_ - facts.last_use_ms + 1);
      if (cheapest == nullptr || worth < lowest) {
        cheapest = &*it;
        lowest = worth;
      }
    }
    if (cheapest == nullptr) break;
    EntryId victim = cheapest->second;
    victims.emplace_back(victim, entries_.at(victim));
    excess_bytes -= victims.back().second.bytes;
    Remove(victim);
  }
  return victims;
}

std::vector<EvictionIndex::Entry> EvictionIndex::TakeTouched(size_t limit) {
  std::vector<Entry> taken;
  while (!touched_.empty() && taken.size() < limit) {
    EntryId id = *touched_.begin();
    taken.emplace_back(id, entries_.at(id));
    touched_.erase(touched_.begin());
  }
  return taken;
}

}  // namespace fusion
