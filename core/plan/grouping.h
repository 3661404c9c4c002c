#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/benefit/estimate.h"
#include "core/bundle/plan.h"
#include "core/graph/program.h"
#include "core/schedule/candidates.h"

namespace fusion {

/// The best schedule found for a set of loop ops, or why there is none. In terms of a program of
/// its own, so that equal sets of a model (its layers) share one.
struct GroupChoice {
  Program program;  // the ops alone
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
  /// For each value of Evaluate(loops).program the value of the whole program it stands for.
  std::vector<ValueId> Values(const std::vector<LoopId>& loops) const;

  const Program& program() const { return program_; }
  int threads() const { return device_.threads; }
  /// True for values that depend on weights and constants only.
  bool IsConstant(ValueId v) const { return constant_[static_cast<size_t>(v)]; }

 private:
  /// What decides the choice: the classes of the ops, how they are connected, what is needed
  /// outside. Equal keys have equal choices.
  std::vector<int> Key(const std::vector<LoopId>& loops) const;
  bool NeededOutside(ValueId v, const std::vector<LoopId>& loops) const;
  /// True if an op reads, reinterpreted, what another one writes: in memory only, so not within one
  /// kernel.
  bool ReadsReinterpreted(const std::vector<LoopId>& loops) const;
  GroupChoice Search(const std::vector<LoopId>& loops) const;
  void ClassifyOps();

  const Program& program_;
  const DeviceSpec& device_;
  const PlanOptions& options_;
  std::vector<bool> constant_;
  std::vector<bool> returned_;
  std::vector<std::vector<LoopId>> readers_;  // by value
  std::vector<int> class_of_op_;              // equal for ops with equal bodies and operand types
  std::map<std::vector<int>, std::unique_ptr<GroupChoice>> known_;
  GroupChoice reinterpreted_;  // the refusal of sets that ReadsReinterpreted
};

/// One set of loop ops that becomes a kernel.
struct Grouping {
  std::vector<std::vector<LoopId>> groups;  // in an order that respects data flow
  std::vector<PlanDecision> decisions;
};

/// One group a graph node: the baseline. A node whose ops have no common schedule is split into
/// single ops. Unimplemented, naming the node, if an op has no schedule at all.
absl::StatusOr<Grouping> GroupByNode(const Graph& graph, GroupEvaluator* evaluator);

/// Grows groups along edges from `start` by estimated gain until no merge gains. Nodes in `alone`
/// are left as they are.
absl::StatusOr<Grouping> GrowGroups(const Grouping& start, const PlanOptions& options,
                                    const std::map<NodeId, std::string>& alone,
                                    GroupEvaluator* evaluator, const CancelToken* cancel);

/// Orders groups so that every group comes after those it reads from.
std::vector<std::vector<LoopId>> TopologicalOrder(const Program& program,
                                                  std::vector<std::vector<LoopId>> groups);

}  // namespace fusion
