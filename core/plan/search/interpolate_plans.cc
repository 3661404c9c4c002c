#include "core/plan/search/interpolate_plans.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/plan/sets/group_graph.h"
#include "core/plan/sets/grouping.h"

namespace fusion {
namespace {

using Sets = std::vector<std::vector<LoopId>>;

// Limits: forms of swaps that are tried, and groups in the plans weighed for them.
constexpr size_t kMostForms = 32;
constexpr size_t kMostWalked = 1000000;

// Groups of one plan and the groups of another plan that hold the same ops.
struct Swap {
  Sets old;
  Sets fresh;
};

// The minimal swaps between the plans; groups that both have are left out. Swaps of one form are
// together, in the order of their first ops.
std::vector<std::vector<Swap>> SwapsBetween(const Sets& base, const Sets& other,
                                            GroupEvaluator* evaluator) {
  const size_t ops = evaluator->program().ops.size();
  // Groups of both plans with an op in common belong together: groups of `other` behind `base`'s.
  std::vector<size_t> root(base.size() + other.size());
  std::iota(root.begin(), root.end(), size_t{0});
  auto find = [&root](size_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  std::vector<size_t> group_of(ops, root.size());
  for (size_t g = 0; g < base.size(); ++g) {
    for (LoopId l : base[g]) group_of[static_cast<size_t>(l)] = g;
  }
  for (size_t g = 0; g < other.size(); ++g) {
    for (LoopId l : other[g]) {
      size_t a = find(group_of[static_cast<size_t>(l)]);
      size_t b = find(base.size() + g);
      root[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<size_t, Swap> by_root;
  for (size_t i = 0; i < root.size(); ++i) {
    Swap& swap = by_root[find(i)];
    if (i < base.size()) {
      swap.old.push_back(base[i]);
    } else {
      swap.fresh.push_back(other[i - base.size()]);
    }
  }
  std::map<LoopId, Swap> by_first_op;
  for (auto& [unused, swap] : by_root) {
    if (swap.old.size() == 1 && swap.fresh.size() == 1) continue;
    LoopId first = swap.old.front().front();
    for (const std::vector<LoopId>& group : swap.old) first = std::min(first, group.front());
    by_first_op[first] = std::move(swap);
  }
  // Swaps of one form have equal ops and connections, and are grouped alike on both sides.
  std::map<std::vector<int>, size_t> form_of;
  std::vector<std::vector<Swap>> forms;
  std::vector<int> place(ops, 0);
  for (auto& [unused, swap] : by_first_op) {
    std::vector<LoopId> loops;
    for (const std::vector<LoopId>& group : swap.old) {
      loops.insert(loops.end(), group.begin(), group.end());
    }
    std::sort(loops.begin(), loops.end());
    std::vector<int> key = evaluator->Key(loops);
    for (const Sets* side : {&swap.old, &swap.fresh}) {
      for (size_t g = 0; g < side->size(); ++g) {
        for (LoopId l : (*side)[g]) place[static_cast<size_t>(l)] = static_cast<int>(g);
      }
      for (LoopId l : loops) key.push_back(place[static_cast<size_t>(l)]);
    }
    auto [form, fresh] = form_of.try_emplace(std::move(key), forms.size());
    if (fresh) forms.emplace_back();
    forms[form->second].push_back(std::move(swap));
  }
  return forms;
}

// `groups` after all swaps that keep the groups free of cycles; empty if there are none.
Sets Swapped(const OpLinks& links, const Sets& groups, const std::vector<Swap>& swaps) {
  GroupGraph graph(links, groups);
  bool any = false;
  for (const Swap& swap : swaps) {
    std::vector<int> old;
    for (const std::vector<LoopId>& group : swap.old) old.push_back(graph.GroupOf(group.front()));
    if (!graph.CanReplace(old, swap.fresh)) continue;
    graph.Replace(old, swap.fresh);
    any = true;
  }
  return any ? graph.Groups() : Sets();
}

}  // namespace

absl::StatusOr<WeighedGroups> InterpolatePlans(
    WeighedGroups base, const std::vector<std::vector<LoopId>>& other,
    const std::function<bool(const PlanPoint& fresh, const PlanPoint& old)>& better,
    GroupEvaluator* evaluator, PlanWeigher* weigher) {
  OpLinks links(evaluator->program());
  std::vector<std::vector<Swap>> forms = SwapsBetween(base.groups, other, evaluator);
  size_t walked = 0;
  for (size_t i = 0; i < forms.size() && i < kMostForms && walked < kMostWalked; ++i) {
    Sets groups = Swapped(links, base.groups, forms[i]);
    if (groups.empty()) continue;
    groups = TopologicalOrder(evaluator->program(), std::move(groups));
    walked += groups.size();
    ASSIGN_OR_RETURN(PlanPoint point, weigher->Weigh(groups));
    if (better(point, base.point)) base = {std::move(groups), std::move(point)};
  }
  return base;
}

}  // namespace fusion
