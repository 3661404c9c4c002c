#pragma once

#include <string>

#include "core/bundle/explanation.h"
#include "core/graph/graph.h"

namespace fusion {

/// A picture of a plan in the DOT language: the graph with one kernel a node on the left, and with
/// the plan's kernels as coloured boxes on the right, in which the edges that go through memory say
/// how much they carry. `graph` is the plan's canonical graph.
std::string PlanPicture(const Graph& graph, const PlanExplanation& explanation);

/// What graphviz makes of it. FailedPrecondition if graphviz is not installed; Internal, with its
/// words, if it fails.
absl::StatusOr<std::string> DrawSvg(const std::string& dot);

}  // namespace fusion
