#pragma once

#include <map>
#include <string>

#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/grouping.h"

namespace fusion {

/// Phases of one launch that is joined from several: a layer of a transformer has some eight.
/// Beyond it a kernel takes long to compile and saves what is little beside its own time.
inline constexpr int kMostTurnPhases = 16;

/// What compiling such a launch may take by CompileSeconds: a third of what a kernel may take
/// (compile/limits.h), for machines that are slower.
inline constexpr double kMostTurnCompileSeconds = 10;

/// `grouping` with neighbouring groups, in the order in which they run, as phases of one launch
/// each ("all-in-one"): so saves a launch for a barrier with every group but the first. Groups that
/// run before the first run, what is read reinterpreted, what a rule keeps apart
/// and launches beyond the limits above stay apart. A stretch of groups that is too long for one
/// launch is cut where its structure begins again, so that equal layers get equal launches and
/// share their kernels. Groups stay as they are; those of weights alone come first.
/// With nodes in `unfused_nodes` nothing is joined: what failed may have been such a launch, and
/// the kernels behind it are to be had one by one.
///
/// Phases that are estimated to be faster so run as pipelines (schedule/phase_pipeline.h); where
/// one part reads what the part before it wrote and is not in a pipeline with it, `considered` says
/// why. Deterministic; fails only as the evaluator's cancel token says.
absl::StatusOr<Grouping> JoinInTurn(Grouping grouping,
                                    const std::map<NodeId, std::string>& unfused_nodes,
                                    GroupEvaluator* evaluator);

}  // namespace fusion
