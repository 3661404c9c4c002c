#pragma once

#include <string>
#include <string_view>

#include "client/fusion_reply.h"
#include "core/graph/graph.h"
#include "core/smg/smg.h"

namespace fusion {

// Graphs in the DOT language of graphviz. Names of the model are escaped; identifiers are
// generated.

/// The graph: nodes with names, tensors as edges.
std::string GraphDot(const Graph& graph);

/// The same, with the groups of the plan as clusters. `graph`: the plan's canonical graph.
std::string PlanDot(const Graph& graph, const FusionReply& reply);

/// Data spaces as ellipses, iteration spaces as boxes, mappings as edges; one cluster per SMG.
std::string SmgDot(const std::vector<std::pair<std::string, Smg>>& smgs);

}  // namespace fusion
