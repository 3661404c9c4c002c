#include "core/cache/eviction_index.h"

namespace fusion {
namespace {

// How many of the oldest entries compete by cost: few enough that recency still decides.
constexpr int kCandidates = 16;

double CostPerByte(const EntryFacts& facts) {
  return facts.cost_ms / static_cast<double>(facts.bytes > 0 ? facts.bytes : 1);
}

}  // namespace

void EvictionIndex::Add(const EntryId& id, const EntryFacts& facts) {
  Remove(id);
  entries_.emplace(id, facts);
  by_age_.insert({facts.last_use_ms, id});
  bytes_ += facts.bytes;
  if (id.kind == EntryKind::kPlan) places_.insert({facts.created_ms, id.key});
}

bool EvictionIndex::Remove(const EntryId& id) {
  auto it = entries_.find(id);
  if (it == entries_.end()) return false;
  by_age_.erase({it->second.last_use_ms, id});
  touched_.erase(id);
  bytes_ -= it->second.bytes;
  if (id.kind == EntryKind::kPlan) places_.erase({it->second.created_ms, id.key});
  entries_.erase(it);
  ++removals_;
  return true;
}

void EvictionIndex::Touch(const EntryId& id, int64_t now_ms) {
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.last_use_ms == now_ms) return;
  by_age_.erase({it->second.last_use_ms, id});
  it->second.last_use_ms = now_ms;
  by_age_.insert({now_ms, id});
  touched_.insert(id);
}

const EntryFacts* EvictionIndex::Find(const EntryId& id) const {
  auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

std::vector<EvictionIndex::Entry> EvictionIndex::MakeRoom(int64_t incoming_bytes,
                                                          int64_t budget_bytes,
                                                          const std::set<EntryId>& keep) {
  std::vector<Entry> victims;
  if (bytes_ + incoming_bytes <= budget_bytes) return victims;
  int64_t target = budget_bytes - budget_bytes / 10;
  while (bytes_ + incoming_bytes > target) {
    const Age* cheapest = nullptr;
    double lowest = 0;
    int seen = 0;
    for (auto it = by_age_.begin(); it != by_age_.end() && seen < kCandidates; ++it) {
      if (keep.contains(it->second)) continue;
      ++seen;
      double cost = CostPerByte(entries_.at(it->second));
      if (cheapest == nullptr || cost < lowest) {
        cheapest = &*it;
        lowest = cost;
      }
    }
    if (cheapest == nullptr) break;
    EntryId victim = cheapest->second;
    victims.emplace_back(victim, entries_.at(victim));
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
