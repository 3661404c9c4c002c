#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/plan/evaluator.h"
#include "core/plan/ledger.h"

namespace fusion {

/// Sets of loop ops that become kernels.
struct Grouping {
  std::vector<std::vector<LoopId>> groups;  // in an order that respects data flow
  std::vector<Considered> considered;       // on the way here, in order
  /// By group: it runs as the next phases of the launch that the group before it is of. Empty: each
  /// is a launch of its own.
  std::vector<bool> follows = {};
};

/// Groups [begin, EndOfLaunch(follows, begin, groups)) are one launch; `follows` as in Grouping.
size_t EndOfLaunch(const std::vector<bool>& follows, size_t begin, size_t groups);

/// Loop ops of one kernel: beyond it a kernel gains nothing that two lack, and takes ever longer to
/// plan and to compile. The largest of a transformer layer have some 30.
inline constexpr size_t kMostOps = 96;

/// Inputs of the loop ops of one kernel, and those of them that lie one behind the other in a
/// result (Concat): compiling takes time that grows with their square, 15 s of the 30 s a kernel
/// may take with so many (Intel family 6 model 85, g++ 12, 2026-11-21).
inline constexpr size_t kMostOperands = 2048;
inline constexpr size_t kMostPieces = 1024;

/// A change of groups must gain more than this, in microseconds: less is noise of the model.
inline constexpr double kMinGainUs = 0.05;

/// With high compute pressure only groups this much faster than their nodes are formed.
inline constexpr double kPressureSpeedup = 1.5;

/// Why one kernel is not worth having in the place of two; empty if it is. As rules weigh the
/// times.
Refusal WithoutGain(const GroupVerdict& first, const GroupVerdict& second,
                    const GroupVerdict& together);

/// Why one kernel cannot hold these loop ops: what of them is above kMostOperands or kMostPieces.
/// Empty if it can.
std::string TooWide(const Program& program, const std::vector<LoopId>& loops);

/// One group a graph node: the baseline. What a node computes from weights alone is a group of its
/// own. A node whose ops have no common schedule is split into single ops, one of more than
/// kMostOps ops into several groups. Unimplemented, naming the node,
/// if an op has no schedule at all or too many inputs.
absl::StatusOr<Grouping> GroupByNode(const Graph& graph, GroupEvaluator* evaluator);

/// Grows groups along edges from `start` by estimated gain until no merge gains: the greedy
/// expansion that SearchGroups begins with. Nodes in `alone` are left as they are.
absl::StatusOr<Grouping> GrowGroups(const Grouping& start,
                                    const std::map<NodeId, std::string>& alone,
                                    GroupEvaluator* evaluator);

/// For high compute pressure: groups of `grown` whose speed-up over their parts in `start`, of
/// which they are made, does not justify them fall back to these.
absl::StatusOr<Grouping> DissolveSlowGroups(const Grouping& grown, const Grouping& start,
                                            GroupEvaluator* evaluator);

/// Orders groups so that every group comes after those it reads from.
std::vector<std::vector<LoopId>> TopologicalOrder(const Program& program,
                                                  std::vector<std::vector<LoopId>> groups);

}  // namespace fusion
