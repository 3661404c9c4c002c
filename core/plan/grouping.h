#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/benefit/estimate.h"
#include "core/bundle/plan.h"
#include "core/graph/program.h"
#include "core/schedule/candidates.h"

namespace fusion {

/// The best schedule found for a set of loop ops, or why there is none.
struct GroupChoice {
  FusionGroup group;
  Lowered lowered;
  Estimate estimate;
  std::string refusal;  // empty: there is a schedule
};

/// Finds and remembers the best schedule of sets of loop ops of one program. Not thread-safe.
class GroupEvaluator {
 public:
  GroupEvaluator(const Program& program, const DeviceSpec& device, const PlanOptions& options);

  /// `loops` ascending. The result lives as long as the evaluator.
  const GroupChoice& Evaluate(const std::vector<LoopId>& loops);

  const Program& program() const { return program_; }
  /// True for values that depend on weights and constants only.
  bool IsConstant(ValueId v) const { return constant_[static_cast<size_t>(v)]; }
  /// Values read outside `loops` or returned by the program.
  std::vector<bool> NeededOutside(const std::vector<LoopId>& loops) const;

 private:
  GroupChoice Search(const std::vector<LoopId>& loops) const;

  const Program& program_;
  const DeviceSpec& device_;
  const PlanOptions& options_;
  std::vector<bool> constant_;
  std::vector<std::vector<LoopId>> readers_;  // by value
  std::map<std::vector<LoopId>, std::unique_ptr<GroupChoice>> known_;
};

/// One set of loop ops that becomes a kernel.
struct Grouping {
  std::vector<std::vector<LoopId>> groups;  // in an order that respects data flow
  std::vector<PlanDecision> decisions;
};

/// One group a graph node: the baseline. A node whose ops have no common schedule is split into single ops.
/// Unimplemented, naming the node, if an op has no schedule at all.
absl::StatusOr<Grouping> GroupByNode(const Graph& graph, GroupEvaluator* evaluator);

/// Grows groups along edges from `start` by estimated gain until no merge gains.
absl::StatusOr<Grouping> GrowGroups(const Grouping& start, const PlanOptions& options,
                                    GroupEvaluator* evaluator, const CancelToken* cancel);

/// Orders groups so that every group comes after those it reads from.
std::vector<std::vector<LoopId>> TopologicalOrder(const Program& program,
                                                  std::vector<std::vector<LoopId>> groups);

}  // namespace fusion
