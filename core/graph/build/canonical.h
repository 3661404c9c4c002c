#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace fusion {

/// A graph without names and independent of node order, and the way back to the caller's names.
struct CanonicalGraph {
  /// Nodes in depth-first order from the outputs, without dead nodes and names. Inputs are in the
  /// caller's order, weights in order of first use. Equal for two graphs that differ only in names
  /// and node order.
  Graph graph;

  /// The caller's names, by canonical position.
  std::vector<std::string> node_names;
  std::vector<std::string> input_names;
  std::vector<std::string> weight_names;  // in the order of weight tensors of `graph`
  std::vector<std::string> output_names;

  /// KeyText(graph): the graph's part of the plan key.
  std::string key_text;
};

/// Also turns each constant that the client holds itself (Tensor::client_has_bytes) into a weight
/// unless it has exactly one element. Then its bytes enter neither key nor source. (Folding has
/// already used the constants whose values matter.) Fails as GraphBuilder does.
absl::StatusOr<CanonicalGraph> Canonicalise(const Graph& graph);

}  // namespace fusion
