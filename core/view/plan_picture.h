#pragma once

#include <string>

#include "core/bundle/explanation.h"
#include "core/graph/graph.h"

namespace fusion {

/// A picture of a plan in the DOT language: on the left the graph with one kernel per node, on the
/// right the plan's kernels as coloured boxes. Edges on the right that go through memory have the
/// number of bytes. `graph`: the plan's canonical graph. Inputs and outputs without a name are
/// numbered.
std::string PlanPicture(const Graph& graph, const PlanExplanation& explanation);

}  // namespace fusion
