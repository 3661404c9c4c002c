#include "core/plan/sets/group_graph.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/check.h"

namespace fusion {
namespace {

// Initial distance between places; it can be halved 24 times for insertions.
constexpr int64_t kGap = int64_t{1} << 24;
// Limit on groups between the first and the last replaced one. Without it, the cost of many
// replacements would grow faster than the graph.
constexpr int kMostNodesBetween = 4096;

void SortUnique(std::vector<LoopId>* list) {
  std::sort(list->begin(), list->end());
  list->erase(std::unique(list->begin(), list->end()), list->end());
}

}  // namespace

OpLinks::OpLinks(const Program& program)
    : readers(program.ops.size()), writers(program.ops.size()) {
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].IsAlias()) continue;
    for (ValueId v : program.ops[i].inputs) {
      LoopId w = program.value(v).producer;
      while (w != kNoLoop && program.op(w).IsAlias()) {
        w = program.value(program.op(w).inputs[0]).producer;
      }
      if (w != kNoLoop) writers[i].push_back(w);
    }
    SortUnique(&writers[i]);
    for (LoopId w : writers[i]) readers[static_cast<size_t>(w)].push_back(static_cast<LoopId>(i));
  }
}

GroupGraph::GroupGraph(const OpLinks& links, const std::vector<std::vector<LoopId>>& groups)
    : links_(links),
      loops_(groups),
      alive_(groups.size(), true),
      group_of_(links.readers.size(), -1),
      seen_in_(groups.size(), 0),
      part_of_(links.readers.size(), -1) {
  for (size_t g = 0; g < groups.size(); ++g) {
    place_.push_back(static_cast<int64_t>(g + 1) * kGap);
    at_.emplace(place_.back(), static_cast<int>(g));
    for (LoopId l : groups[g]) group_of_[static_cast<size_t>(l)] = static_cast<int>(g);
  }
}

template <typename Visit>
void GroupGraph::VisitGroups(const std::vector<LoopId>& loops,
                             const std::vector<std::vector<LoopId>>& linked,
                             const Visit& visit) const {
  for (LoopId l : loops) {
    for (LoopId other : linked[static_cast<size_t>(l)]) visit(other, GroupOf(other));
  }
}

std::vector<int> GroupGraph::Neighbours(int g,
                                        const std::vector<std::vector<LoopId>>& linked) const {
  std::vector<int> out;
  VisitGroups(loops(g), linked, [&](LoopId, int other) {
    if (other != g) out.push_back(other);
  });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<int> GroupGraph::ReadersOf(int g) const { return Neighbours(g, links_.readers); }
std::vector<int> GroupGraph::WritersOf(int g) const { return Neighbours(g, links_.writers); }

std::vector<int> GroupGraph::Near(int g, int most) const {
  std::vector<int> out;
  auto here = at_.find(place_[static_cast<size_t>(g)]);
  auto before = here;
  auto after = std::next(here);
  for (int i = 0; i < most; ++i) {
    if (before != at_.begin()) out.push_back((--before)->second);
    if (after != at_.end()) out.push_back((after++)->second);
  }
  return out;
}

std::pair<int64_t, int64_t> GroupGraph::Range(const std::vector<int>& groups) const {
  auto [first, last] =
      std::minmax_element(groups.begin(), groups.end(), [&](int a, int b) { return Before(a, b); });
  return {place_[static_cast<size_t>(*first)], place_[static_cast<size_t>(*last)]};
}

std::optional<GroupGraph::Paths> GroupGraph::PathsBetween(
    const std::vector<int>& groups, const std::vector<std::vector<LoopId>>& parts) {
  auto [first, last] = Range(groups);
  auto at = at_.find(first);
  for (int between = 0; at->first != last; ++at) {
    if (++between > kMostNodesBetween) return std::nullopt;
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    for (LoopId l : parts[p]) part_of_[static_cast<size_t>(l)] = static_cast<int>(p);
  }
  Paths paths(parts.size(), std::vector<uint8_t>(parts.size(), kNoPath));
  int budget = kMostNodesBetween;
  std::vector<int> stack;
  for (size_t p = 0; p < parts.size(); ++p) {
    ++search_;
    // Groups that stay and come after the last one have no path to them.
    auto reach = [&, stop = last](LoopId l, int g, Path path) {
      int to = part_of_[static_cast<size_t>(l)];
      if (to == static_cast<int>(p) && path == kDirect) return;
      if (to >= 0) {
        paths[p][static_cast<size_t>(to)] |= path;
      } else if (place_[static_cast<size_t>(g)] < stop &&
                 seen_in_[static_cast<size_t>(g)] != search_) {
        seen_in_[static_cast<size_t>(g)] = search_;
        stack.push_back(g);
      }
    };
    VisitGroups(parts[p], links_.readers, [&](LoopId l, int g) { reach(l, g, kDirect); });
    while (!stack.empty() && --budget >= 0) {
      int g = stack.back();
      stack.pop_back();
      VisitGroups(loops(g), links_.readers, [&](LoopId l, int to) { reach(l, to, kAround); });
    }
    stack.clear();
  }
  for (const std::vector<LoopId>& part : parts) {
    for (LoopId l : part) part_of_[static_cast<size_t>(l)] = -1;
  }
  if (budget < 0) return std::nullopt;
  return paths;
}

bool GroupGraph::CanReplace(const std::vector<int>& old,
                            const std::vector<std::vector<LoopId>>& fresh) {
  std::optional<Paths> paths = PathsBetween(old, fresh);
  if (!paths) return false;
  Paths& leads = *paths;
  for (size_t k = 0; k < fresh.size(); ++k) {
    for (size_t i = 0; i < fresh.size(); ++i) {
      for (size_t j = 0; j < fresh.size(); ++j) {
        if (leads[i][k] != kNoPath && leads[k][j] != kNoPath) leads[i][j] |= kAround;
      }
    }
  }
  for (size_t f = 0; f < fresh.size(); ++f) {
    if (leads[f][f] != kNoPath) return false;
  }
  return true;
}

std::vector<int> GroupGraph::Replace(const std::vector<int>& old,
                                     std::vector<std::vector<LoopId>> fresh) {
  auto [first, last] = Range(old);
  std::vector<int> rest;
  auto begin = at_.find(first);
  auto stop = std::next(at_.find(last));
  for (auto it = begin; it != stop; ++it) {
    if (std::find(old.begin(), old.end(), it->second) == old.end()) rest.push_back(it->second);
  }
  for (int g : old) alive_[static_cast<size_t>(g)] = false;
  std::vector<int> made;
  for (std::vector<LoopId>& group : fresh) {
    int g = end();
    for (LoopId l : group) group_of_[static_cast<size_t>(l)] = g;
    loops_.push_back(std::move(group));
    alive_.push_back(true);
    place_.push_back(0);
    seen_in_.push_back(0);
    made.push_back(g);
  }
  rest.insert(rest.begin(), made.begin(), made.end());
  at_.erase(begin, stop);
  Insert(Sorted(rest), last);
  return made;
}

// An order of these groups that respects data flow, close to their current order.
std::vector<int> GroupGraph::Sorted(const std::vector<int>& groups) const {
  std::unordered_map<int, int> waits;
  for (int g : groups) waits[g] = 0;
  for (int g : groups) {
    for (int r : ReadersOf(g)) {
      auto it = waits.find(r);
      if (it != waits.end()) ++it->second;
    }
  }
  std::vector<int> sorted;
  for (int g : groups) {
    if (waits[g] == 0) sorted.push_back(g);
  }
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (int r : ReadersOf(sorted[i])) {
      auto it = waits.find(r);
      if (it != waits.end() && --it->second == 0) sorted.push_back(r);
    }
  }
  FUSION_CHECK(sorted.size() == groups.size(), "a replacement that makes no cycle");
  return sorted;
}

// Assigns free places up to about `last` to groups.
void GroupGraph::Insert(const std::vector<int>& groups, int64_t last) {
  auto behind = at_.upper_bound(last);
  int64_t low = behind == at_.begin() ? 0 : std::prev(behind)->first;
  int64_t high = behind == at_.end() ? last + kGap : behind->first;
  int64_t step = (high - low) / static_cast<int64_t>(groups.size() + 1);
  if (step > 0) {
    for (int g : groups) {
      low += step;
      place_[static_cast<size_t>(g)] = low;
      at_.emplace(low, g);
    }
    return;
  }
  std::vector<int> all;
  for (auto it = at_.begin(); it != behind; ++it) all.push_back(it->second);
  all.insert(all.end(), groups.begin(), groups.end());
  for (auto it = behind; it != at_.end(); ++it) all.push_back(it->second);
  at_.clear();
  for (size_t i = 0; i < all.size(); ++i) {
    place_[static_cast<size_t>(all[i])] = static_cast<int64_t>(i + 1) * kGap;
    at_.emplace(place_[static_cast<size_t>(all[i])], all[i]);
  }
}

std::vector<std::vector<LoopId>> GroupGraph::Groups() const {
  std::vector<std::vector<LoopId>> out;
  for (const auto& [place, g] : at_) out.push_back(loops(g));
  return out;
}

}  // namespace fusion
