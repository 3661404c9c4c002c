#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace fusion {

/// A graph without names and without the accidents of node order, and how to get back to the
/// caller's words.
struct CanonicalGraph {
  /// Nodes in depth-first order from the outputs, dead nodes gone, names empty; inputs in the
  /// caller's order, weights in order of first use. Equal for two graphs that differ only in names
  /// and node order.
  Graph graph;

  /// Names of the caller, by canonical position.
  std::vector<std::string> node_names;
  std::vector<std::string> input_names;
  std::vector<std::string> weight_names;  // in the order of weight tensors of `graph`
  std::vector<std::string> output_names;

  /// KeyText(graph): what the plan key is made of.
  std::string key_text;
};

/// Also turns every constant of more than one element that the client holds itself into a weight,
/// so that its bytes enter neither key nor source (folding has already consumed those whose values
/// matter).
absl::StatusOr<CanonicalGraph> Canonicalise(const Graph& graph);

}  // namespace fusion
