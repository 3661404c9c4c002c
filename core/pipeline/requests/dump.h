#pragma once

#include <set>
#include <vector>

#include "core/bundle/answer.h"
#include "core/graph/build/canonical.h"
#include "core/pipeline/kernels/kernels.h"
#include "core/plan/planner.h"

namespace fusion {

using DumpKinds = std::set<DumpKind>;

/// One overload per stage result that has texts; RunStage calls them. They append the `wanted`
/// kinds.
void AppendDumps(const CanonicalGraph& graph, const DumpKinds& wanted, std::vector<Dump>* out);
void AppendDumps(const PlannedModel& model, const DumpKinds& wanted, std::vector<Dump>* out);
void AppendDumps(const NamedKernels& kernels, const DumpKinds& wanted, std::vector<Dump>* out);

}  // namespace fusion
