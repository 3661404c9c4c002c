#include <algorithm>

#include "core/plan/grouping.h"
#include "core/plan/loop_sets.h"

namespace fusion {
namespace {

// With high compute pressure only groups this much faster than their nodes are formed.
constexpr double kPressureSpeedup = 1.5;

}  // namespace

absl::StatusOr<Grouping> DissolveSlowGroups(const Grouping& grown, const Grouping& start,
                                            GroupEvaluator* evaluator) {
  Grouping out;
  out.decisions = grown.decisions;
  for (const std::vector<LoopId>& loops : grown.groups) {
    double apart = 0;
    std::vector<std::vector<LoopId>> parts;
    for (const std::vector<LoopId>& part : start.groups) {
      if (!std::includes(loops.begin(), loops.end(), part.begin(), part.end())) continue;
      parts.push_back(part);
      ASSIGN_OR_RETURN(const GroupVerdict* alone, evaluator->Evaluate(part));
      apart += alone->estimate.time_us;
    }
    ASSIGN_OR_RETURN(const GroupVerdict* whole, evaluator->Evaluate(loops));
    double together = whole->estimate.time_us;
    if (parts.size() < 2 || apart > kPressureSpeedup * together) {
      out.groups.push_back(loops);
      continue;
    }
    out.decisions.push_back({.nodes = NodesOf(evaluator->program(), loops),
                             .chosen = false,
                             .reason = StrCat("pressure: speed-up ", apart / together,
                                              " is below 1.5 and compute pressure is high"),
                             .benefit_us = apart - together});
    out.groups.insert(out.groups.end(), parts.begin(), parts.end());
  }
  out.groups = TopologicalOrder(evaluator->program(), std::move(out.groups));
  return out;
}

}  // namespace fusion
