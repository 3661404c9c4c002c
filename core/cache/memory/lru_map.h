#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>
#include <vector>

namespace fusion {

/// Maximum size of an entry in a cache of `budget_bytes`, if the entry can be read again from
/// another tier. Otherwise a few huge entries would evict all others.
constexpr int64_t LargestEntryBytes(int64_t budget_bytes) { return budget_bytes / 4; }

/// A map with a total cost of at most `budget`. It evicts the least recently used entries first.
/// Entries that cost more than `largest` are not kept.
///
///   LruMap<Digest, Plan> plans(/*budget=*/64 << 20);
///   plans.Insert(key, plan, /*cost=*/bytes);   if (Plan* p = plans.Find(key)) ...
///
/// Not thread-safe.
template <typename Key, typename Value>
class LruMap {
 public:
  explicit LruMap(int64_t budget) : LruMap(budget, budget) {}
  LruMap(int64_t budget, int64_t largest) : budget_(budget), largest_(std::min(budget, largest)) {}

  /// Null if absent. Counts as a use. The pointer is valid until the next Insert, Erase or Clear.
  Value* Find(const Key& key) {
    auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return &it->second->value;
  }
  /// As Find, but does not count as a use.
  const Value* Peek(const Key& key) const {
    auto it = index_.find(key);
    return it == index_.end() ? nullptr : &it->second->value;
  }
  bool Contains(const Key& key) const { return index_.contains(key); }

  /// Adds or replaces. If `cost` exceeds the limit, only removes the old value. Returns the evicted
  /// entries, so that the caller can destroy them after it releases its lock.
  std::vector<std::pair<Key, Value>> Insert(const Key& key, Value value, int64_t cost) {
    Erase(key);
    if (cost > largest_) return {};
    order_.push_front({key, std::move(value), cost});
    index_.emplace(key, order_.begin());
    cost_ += cost;
    return Trim(budget_);
  }

  /// Evicts the least recently used entries until the total cost is at most `keep`. Returns them,
  /// as Insert does.
  std::vector<std::pair<Key, Value>> Trim(int64_t keep) {
    std::vector<std::pair<Key, Value>> evicted;
    while (cost_ > keep && !order_.empty()) {
      Node& oldest = order_.back();
      index_.erase(oldest.key);
      cost_ -= oldest.cost;
      evicted.emplace_back(std::move(oldest.key), std::move(oldest.value));
      order_.pop_back();
    }
    return evicted;
  }

  /// Evicts the least recently used entries; a quarter of the budget stays. Returns them.
  std::vector<std::pair<Key, Value>> MakeRoom() { return Trim(budget_ / 4); }

  /// False if absent.
  bool Erase(const Key& key) {
    auto it = index_.find(key);
    if (it == index_.end()) return false;
    cost_ -= it->second->cost;
    order_.erase(it->second);
    index_.erase(it);
    return true;
  }

  void Clear() {
    index_.clear();
    order_.clear();
    cost_ = 0;
  }

  int64_t cost() const { return cost_; }
  int64_t budget() const { return budget_; }
  size_t size() const { return index_.size(); }

 private:
  struct Node {
    Key key;
    Value value;
    int64_t cost;
  };
  const int64_t budget_, largest_;
  int64_t cost_ = 0;
  std::list<Node> order_;  // most recently used first
  std::map<Key, typename std::list<Node>::iterator> index_;
};

}  // namespace fusion
