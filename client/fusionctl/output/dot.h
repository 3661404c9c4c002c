#pragma once

#include <string>
#include <string_view>

#include "client/fusion_reply.h"
#include "core/graph/graph.h"
#include "core/smg/smg.h"

namespace fusion {

// Graphviz forms. Names of callers are escaped; ids are ours.

/// A string of the DOT language.
std::string DotString(std::string_view text);

/// Nodes by name, tensors as edges.
std::string GraphDot(const Graph& graph);

/// The same with the groups of the plan as clusters. `graph` is the plan's canonical graph.
std::string PlanDot(const Graph& graph, const FusionReply& reply);

/// Data spaces as ellipses, iteration spaces as boxes, mappings as edges; one cluster per SMG.
std::string SmgDot(const std::vector<std::pair<std::string, Smg>>& smgs);

}  // namespace fusion
