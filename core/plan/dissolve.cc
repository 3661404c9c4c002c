#include <algorithm>

#include "core/plan/grouping.h"

namespace fusion {
absl::StatusOr<Grouping> DissolveSlowGroups(const Grouping& grown, const Grouping& start,
                                            GroupEvaluator* evaluator) {
  Grouping out;
  out.considered = grown.considered;
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
    out.considered.push_back(
        {loops, {}, Refuse(RefusalCode::kPressure, SpeedupText(apart / together))});
    out.groups.insert(out.groups.end(), parts.begin(), parts.end());
  }
  out.groups = TopologicalOrder(evaluator->program(), std::move(out.groups));
  return out;
}

}  // namespace fusion
