#pragma once

#include "client/fusion_reply.h"
#include "core/graph/graph.h"

namespace fusion {

/// Adds the caller's names to a plan's canonical graph, which has none. InvalidArgument if `names`
/// is not the binding of `canonical`.
absl::StatusOr<Graph> NameGraph(const Graph& canonical, const Binding& names);

/// The same for the graph in a reply; the request must have had DumpKind::kGraph.
absl::StatusOr<Graph> NamedGraph(const FusionReply& reply);

}  // namespace fusion
