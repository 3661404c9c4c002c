#include <set>

#include "core/plan/cost/gain.h"
#include "core/plan/search/grow.h"

namespace fusion {

absl::StatusOr<Grouping> DissolveSlowGroups(const Grouping& grown, const Grouping& start,
                                            GroupEvaluator* evaluator) {
  Grouping out;
  out.considered = grown.considered;
  std::vector<size_t> part_of(evaluator->program().ops.size(), start.groups.size());
  for (size_t p = 0; p < start.groups.size(); ++p) {
    for (LoopId l : start.groups[p]) part_of[static_cast<size_t>(l)] = p;
  }
  for (const std::vector<LoopId>& loops : grown.groups) {
    double apart = 0;
    std::vector<std::vector<LoopId>> parts;
    std::set<size_t> held;
    for (LoopId l : loops) held.insert(part_of[static_cast<size_t>(l)]);
    for (size_t p : held) {
      const std::vector<LoopId>& part = start.groups[p];
      parts.push_back(part);
      ASSIGN_OR_RETURN(const GroupVerdict* own, evaluator->Evaluate(part));
      apart += own->estimate.time_us;
    }
    ASSIGN_OR_RETURN(const GroupVerdict* whole, evaluator->Evaluate(loops));
    double together = whole->estimate.time_us;
    if (parts.size() < 2 || apart > kPressureSpeedup * together) {
      out.groups.push_back(loops);
      continue;
    }
    out.considered.push_back(
        {loops, {}, Refuse(RefusalCode::kPressure, SpeedupText(apart / together))});
    out.groups.insert(out.groups.end(), parts.begin(), parts.end());
  }
  out.groups = TopologicalOrder(evaluator->program(), std::move(out.groups));
  return out;
}

}  // namespace fusion
