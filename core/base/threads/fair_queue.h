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

  /// Whose turn it is; nullopt if nothing waits of tenants with fewer than `below` items under way.
  /// Counts as under way until Done.
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

  /// An item that Pop gave has ended.
  void Done(const WorkOwner& owner) {
    auto it = tenants_.find(owner.tenant);
    --it->second.under_way;
    if (it->second.IsIdle()) tenants_.erase(it);
  }

  /// Makes room for one more of `arriving`: takes out the newest item that `may_go` of the tenant
  /// with the most waiting. For work that is waited for that is background work, of any tenant, if
  /// there is some, else what others wait for; for background work it is background work. But for
  /// the first, only of a tenant that has more waiting than `arriving`'s would have. nullopt if
  /// there is no such item: then there is no room.
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

  /// Takes out what waits and is `gone`, whoever's it is.
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

  /// How many of the items that wait would be served before one that `arriving` pushed now: its
  /// own, of every other tenant as many, and for background work all that is waited for. What is
  /// under way is not looked at.
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

  // Of the tenant with the most waiting, more than `above` and not `but`, that has one.
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

  // The tenant stays.
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

  Tenants tenants_;  // with something waiting or under way
  size_t waiting_[2] = {0, 0};
  uint64_t pops_ = 0;
  uint64_t served_ = 0;
};

}  // namespace fusion
