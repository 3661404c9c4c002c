#pragma once

#include "client/fusion_reply.h"
#include "core/graph/graph.h"

namespace fusion {

/// A plan's canonical graph, which has no names, with the caller's names put back.
/// InvalidArgument if `canonical` is not the graph of that binding.
absl::StatusOr<Graph> NameGraph(const Graph& canonical, const Binding& names);

/// That of a reply that was asked for DumpKind::kGraph.
absl::StatusOr<Graph> NamedGraph(const FusionReply& reply);

}  // namespace fusion
