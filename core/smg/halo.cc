#include "core/smg/halo.h"

#include <algorithm>
#include <map>

#include "core/base/contains.h"

namespace fusion {
namespace {

// By dim of an intermediate: the indices, other than the reader's own coordinate, at which it is
// read.
std::map<DimId, std::vector<IndexExpr>> Reached(const Smg& smg) {
  std::map<DimId, std::vector<IndexExpr>> reached;
  for (const SmgOp& op : smg.ops) {
    for (const SmgRead& read : op.reads) {
      if (read.producer < 0 || read.relation != SmgRead::kShifted) continue;
      auto coordinates = ProducerCoordinates(smg, read);
      if (!coordinates) continue;
      for (const auto& [d, at] : *coordinates) {
        std::vector<IndexExpr>& list = reached[d];
        if (at != IndexExpr::Axis(d) && !Contains(list, at)) list.push_back(at);
      }
    }
  }
  return reached;
}

bool DependsOn(const std::vector<IndexExpr>& reached, const std::vector<DimId>& dims) {
  return std::any_of(reached.begin(), reached.end(), [&](const IndexExpr& e) {
    return std::any_of(e.terms().begin(), e.terms().end(),
                       [&](const IndexExpr::Term& t) { return Contains(dims, t.axis); });
  });
}

}  // namespace

std::optional<std::vector<Halo>> HalosOf(const Smg& smg, const std::vector<DimId>& cut) {
  std::vector<Halo> halos;
  const std::map<DimId, std::vector<IndexExpr>> reached = Reached(smg);
  std::vector<DimId> narrowed = cut;
  for (bool changed = !reached.empty(); changed;) {
    changed = false;
    for (const auto& [d, list] : reached) {
      if (Contains(narrowed, d) || !DependsOn(list, narrowed)) continue;
      narrowed.push_back(d);
      changed = true;
    }
  }
  // Halos that depend on no remaining halo come next.
  std::vector<DimId> waiting(narrowed.begin() + static_cast<int64_t>(cut.size()), narrowed.end());
  while (!waiting.empty()) {
    auto next = std::find_if(waiting.begin(), waiting.end(),
                             [&](DimId d) { return !DependsOn(reached.at(d), waiting); });
    if (next == waiting.end()) return std::nullopt;
    halos.push_back({*next, reached.at(*next)});
    waiting.erase(next);
  }
  return halos;
}

std::vector<HaloReach> ReachOf(const Smg& smg, DimId cut, const std::vector<Halo>& halos) {
  std::map<DimId, HaloReach> reach;
  reach[cut] = {cut, 1, 0};
  std::vector<HaloReach> out;
  for (const Halo& halo : halos) {
    HaloReach widest{halo.dim, 0, 1};
    int64_t low = 0;
    int64_t high = 0;
    for (const IndexExpr& e : halo.reached) {
      int64_t step = 0;
      int64_t span = 1;
      for (const IndexExpr::Term& t : e.terms()) {
        int64_t factor = t.coefficient < 0 ? -t.coefficient : t.coefficient;
        auto known = reach.find(t.axis);
        bool fixed = known == reach.end();
        step += fixed ? 0 : factor * known->second.step;
        span += factor * ((fixed ? smg.dim(t.axis).extent : known->second.extra) - 1);
      }
      bool first = &e == &halo.reached.front();
      low = first ? e.constant() : std::min(low, e.constant());
      high = first ? e.constant() + span : std::max(high, e.constant() + span);
      widest.step = std::max(widest.step, step);
    }
    widest.extra = high - low;
    reach[halo.dim] = widest;
    out.push_back(widest);
  }
  return out;
}

}  // namespace fusion
