#pragma once

#include <map>
#include <string>

#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// The largest number of phases of a joined launch. A layer of a transformer has about eight. With
/// more, a kernel takes long to compile, and the saved launches are little compared with its own
/// time.
inline constexpr int kMostSequencePhases = 16;

/// The largest CompileSeconds of a joined launch: a third of the default compile limit of the
/// server (30 s), as a margin for slower machines.
inline constexpr double kMostSequenceCompileSeconds = 10;

/// Joins neighbouring groups of `grouping`, in execution order, to launches that run them as
/// sequential phases ("all-in-one", Grouping::follows). Every group but the first of a launch then
/// costs a barrier instead of a launch. The groups do not change; groups of weights alone move
/// to the front.
///
/// Not joined: groups of weights alone, registered kernels, opaque ops, groups that read each other
/// through a reinterpretation, groups that a rule keeps apart, and launches beyond the limits
/// above. Nothing is joined if a barrier of the device costs as much as a launch, or if
/// `unfused_nodes` is not empty: the kernel that failed may have been a joined launch, and separate
/// kernels isolate the failure. A sequence that is too long for one launch is divided where its
/// structure repeats, so that equal layers get equal launches and share kernels.
///
/// Phases run as pipelines (core/schedule/ir/phase_pipeline.h) where that is estimated to be
/// faster. For each group of a launch that reads from the group before it but waits for it at a
/// barrier, Grouping::considered gets an entry with the reason. Deterministic; fails only as the
/// evaluator's cancel token says.
absl::StatusOr<Grouping> JoinSequential(Grouping grouping,
                                        const std::map<NodeId, std::string>& unfused_nodes,
                                        GroupEvaluator* evaluator);

}  // namespace fusion
