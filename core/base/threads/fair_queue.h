#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fusion {

/// The tenant that work belongs to, and its priority class.
struct WorkOwner {
  std::string tenant;       // empty: the service's own
  bool background = false;  // no caller waits for it: runs when foreground work leaves room
  auto operator<=>(const WorkOwner&) const = default;
};

/// A queue of work for a few servers (threads, processes), shared fairly between tenants.
///
///   FairQueue<Task> queue;
///   queue.Push({"acme"}, task);
///   if (auto next = queue.Pop()) { Run(next->item); queue.Done(next->owner); }
///
/// Pop serves the tenant with the fewest items in progress (popped, not Done yet); among equals,
/// the tenant served longest ago. Items of one tenant are first in, first out. Background items are
/// served when no foreground item waits, and at every kBackgroundTurn-th Pop, so that they do not
/// starve. With one owner it is a plain queue. Pop, Ahead and Displace take time linear in the
/// number of tenants. Not thread-safe.
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

  /// Removes the next item, considering only tenants with fewer than `below` items in progress;
  /// nullopt if none of them has an item waiting. The item is in progress until Done.
  std::optional<Taken> Pop(int64_t below = std::numeric_limits<int64_t>::max()) {
    const bool turn = (pops_ + 1) % kBackgroundTurn == 0;
    const bool first = waiting_[0] == 0 || (turn && waiting_[1] > 0);
    for (const bool background : {first, !first}) {
      auto next = Next(background, below);
      if (next == tenants_.end()) continue;
      ++pops_;
      Tenant& tenant = next->second;
      Taken taken{{next->first, background}, std::move(tenant.waiting[background].front())};
      tenant.waiting[background].pop_front();
      --waiting_[background];
      ++tenant.under_way;
      tenant.served = ++served_;
      return taken;
    }
    return std::nullopt;
  }

  /// Ends one item in progress. Call it once for each item of Pop, with the owner that Pop
  /// returned.
  void Done(const WorkOwner& owner) {
    auto it = tenants_.find(owner.tenant);
    --it->second.under_way;
    if (it->second.IsIdle()) tenants_.erase(it);
  }

  /// Makes room for one more item of `arriving`: removes and returns a waiting item for which
  /// may_go(item). nullopt if there is none: then `arriving` gets no room.
  ///   - A foreground arrival takes the place of a background item of any tenant, also its own.
  ///   - If there is none, or for a background arrival: an item of the class of `arriving`, of
  ///     another tenant, which has more items waiting than the tenant of `arriving` would have.
  /// Of these, it is the newest item of the tenant with the most items waiting. May take time
  /// linear in the queue.
  template <typename Predicate>
  std::optional<Taken> Displace(const WorkOwner& arriving, Predicate may_go) {
    std::optional<Place> victim;
    if (!arriving.background) {
      victim = NewestOfMost(/*background=*/true, /*above=*/0, tenants_.end(), may_go);
    }
    if (!victim.has_value()) {
      auto own = tenants_.find(arriving.tenant);
      const size_t after = own == tenants_.end() ? 1 : own->second.Waiting() + 1;
      victim = NewestOfMost(arriving.background, after, own, may_go);
    }
    if (!victim.has_value()) return std::nullopt;
    return TakeOut(*victim);
  }

  /// Removes and returns all waiting items for which gone(item), of all tenants.
  template <typename Predicate>
  std::vector<Taken> TakeIf(Predicate gone) {
    std::vector<Taken> out;
    for (auto it = tenants_.begin(); it != tenants_.end();) {
      const auto tenant = it++;  // it goes with its last item
      for (const bool background : {true, false}) {
        for (size_t i = tenant->second.waiting[background].size(); i-- > 0;) {
          if (gone(tenant->second.waiting[background][i])) {
            out.push_back(Extract({tenant, background, i}));
          }
        }
      }
      if (tenant->second.IsIdle()) tenants_.erase(tenant);
    }
    return out;
  }

  /// An estimate of how many waiting items would be served before one that `arriving` pushed now:
  /// all n of its own tenant in the same class, up to n + 1 of each other tenant, and for
  /// background work all foreground items. Ignores items in progress.
  size_t Ahead(const WorkOwner& arriving) const {
    const bool background = arriving.background;
    auto own = tenants_.find(arriving.tenant);
    const size_t turns = 1 + (own == tenants_.end() ? 0 : own->second.waiting[background].size());
    size_t ahead = background ? waiting_[0] : 0;
    for (const auto& [name, tenant] : tenants_) {
      const size_t before = name == arriving.tenant ? turns - 1 : turns;
      ahead += std::min(tenant.waiting[background].size(), before);
    }
    return ahead;
  }

  /// Number of waiting items.
  size_t size() const { return waiting_[0] + waiting_[1]; }

 private:
  struct Tenant {
    std::deque<Item> waiting[2];  // by WorkOwner::background
    int64_t under_way = 0;
    uint64_t served = 0;  // value of served_ at its last Pop

    std::pair<int64_t, uint64_t> Rank() const { return {under_way, served}; }
    size_t Waiting() const { return waiting[0].size() + waiting[1].size(); }
    bool IsIdle() const { return under_way == 0 && Waiting() == 0; }
  };

  using Tenants = std::map<std::string, Tenant>;
  struct Place {
    typename Tenants::iterator tenant;
    bool background = false;
    size_t index = 0;
  };

  typename Tenants::iterator Next(bool background, int64_t below) {
    auto next = tenants_.end();
    for (auto it = tenants_.begin(); it != tenants_.end(); ++it) {
      const Tenant& tenant = it->second;
      if (tenant.waiting[background].empty() || tenant.under_way >= below) continue;
      if (next == tenants_.end() || tenant.Rank() < next->second.Rank()) next = it;
    }
    return next;
  }

  // The newest item that may go, of the tenant with the most items waiting among those that have
  // such an item and more than `above` waiting. Not of tenant `but`.
  template <typename Predicate>
  std::optional<Place> NewestOfMost(bool background, size_t above, typename Tenants::iterator but,
                                    Predicate may_go) {
    std::optional<Place> newest;
    for (auto it = tenants_.begin(); it != tenants_.end(); ++it) {
      if (it == but || it->second.Waiting() <= above) continue;
      const std::deque<Item>& waiting = it->second.waiting[background];
      for (size_t i = waiting.size(); i-- > 0;) {
        if (!may_go(waiting[i])) continue;
        newest = Place{it, background, i};
        above = it->second.Waiting();
        break;
      }
    }
    return newest;
  }

  // Keeps the tenant, even if it is idle now.
  Taken Extract(const Place& place) {
    std::deque<Item>& waiting = place.tenant->second.waiting[place.background];
    Taken taken{{place.tenant->first, place.background}, std::move(waiting[place.index])};
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(place.index));
    --waiting_[place.background];
    return taken;
  }

  Taken TakeOut(const Place& place) {
    Taken taken = Extract(place);
    if (place.tenant->second.IsIdle()) tenants_.erase(place.tenant);
    return taken;
  }

  Tenants tenants_;  // with items waiting or in progress
  size_t waiting_[2] = {0, 0};
  uint64_t pops_ = 0;
  uint64_t served_ = 0;
};

}  // namespace fusion
