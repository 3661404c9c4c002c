#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace fusion {

/// Whose work something is, and whether that one waits for it.
struct WorkOwner {
  std::string tenant;       // empty: the service's own
  bool background = false;  // has time: it goes where work that is waited for leaves room
  auto operator<=>(const WorkOwner&) const = default;
};

/// Work that waits for one of a few servers (threads, processes), shared fairly between tenants.
///
///   FairQueue<Task> queue;
///   queue.Push({"acme"}, task);
///   if (auto next = queue.Pop()) { Run(next->item); queue.Done(next->owner); }
///
/// The next item is of the tenant with the fewest items under way, of those of the one that was
/// served longest ago; of one tenant first in, first out. Background items come when no others
/// wait, and every kBackgroundTurn-th time, so that they never starve. With one owner it is a plain
/// queue. Not thread-safe.
template <typename Item>
class FairQueue {
 public:
  static constexpr int kBackgroundTurn = 16;

  struct Taken {
    WorkOwner owner;
    Item item;
  };

  void Push(const WorkOwner& owner, Item item) {
    tenants_[owner.tenant].waiting[owner.background].push_back(std::move(item));
    ++waiting_[owner.background];
  }

  /// Whose turn it is; nullopt if nothing waits. Counts as under way until Done.
  std::optional<Taken> Pop() {
    if (size() == 0) return std::nullopt;
    const bool turn = ++pops_ % kBackgroundTurn == 0;
    const bool background = waiting_[0] == 0 || (turn && waiting_[1] > 0);
    auto next = tenants_.end();
    for (auto it = tenants_.begin(); it != tenants_.end(); ++it) {
      if (it->second.waiting[background].empty()) continue;
      if (next == tenants_.end() || it->second.Rank() < next->second.Rank()) next = it;
    }
    Tenant& tenant = next->second;
    Taken taken{{next->first, background}, std::move(tenant.waiting[background].front())};
    tenant.waiting[background].pop_front();
    --waiting_[background];
    ++tenant.under_way;
    tenant.served = ++served_;
    return taken;
  }

  /// An item that Pop gave has ended.
  void Done(const WorkOwner& owner) {
    auto it = tenants_.find(owner.tenant);
    --it->second.under_way;
    if (it->second.IsIdle()) tenants_.erase(it);
  }

  /// Makes room for one more of `arriving`: takes out the newest item of the tenant with the most
  /// waiting, a background one if it has any. nullopt if that has no more waiting than `arriving`'s
  /// tenant would have, unless background work gives way to work that is waited for; or if
  /// `may_go` says no: then there is no room.
  template <typename Predicate>
  std::optional<Taken> Displace(const WorkOwner& arriving, Predicate may_go) {
    auto longest = tenants_.end();
    for (auto it = tenants_.begin(); it != tenants_.end(); ++it) {
      if (longest == tenants_.end() || it->second.Waiting() > longest->second.Waiting()) {
        longest = it;
      }
    }
    if (longest == tenants_.end() || longest->second.Waiting() == 0) return std::nullopt;
    auto own = tenants_.find(arriving.tenant);
    const size_t after = own == tenants_.end() ? 1 : own->second.Waiting() + 1;
    Tenant& tenant = longest->second;
    const bool background = !tenant.waiting[1].empty();
    const bool less_urgent = background && !arriving.background;
    if (!less_urgent && (longest == own || tenant.Waiting() <= after)) return std::nullopt;
    if (!may_go(tenant.waiting[background].back())) return std::nullopt;
    Taken taken{{longest->first, background}, std::move(tenant.waiting[background].back())};
    tenant.waiting[background].pop_back();
    --waiting_[background];
    if (tenant.IsIdle()) tenants_.erase(longest);
    return taken;
  }

  /// Items that wait.
  size_t size() const { return waiting_[0] + waiting_[1]; }

 private:
  struct Tenant {
    std::deque<Item> waiting[2];  // by WorkOwner::background
    int64_t under_way = 0;
    uint64_t served = 0;  // when last, counted

    std::pair<int64_t, uint64_t> Rank() const { return {under_way, served}; }
    size_t Waiting() const { return waiting[0].size() + waiting[1].size(); }
    bool IsIdle() const { return under_way == 0 && Waiting() == 0; }
  };

  std::map<std::string, Tenant> tenants_;  // with something waiting or under way
  size_t waiting_[2] = {0, 0};
  uint64_t pops_ = 0;
  uint64_t served_ = 0;
};

}  // namespace fusion
