#pragma once

#include <string>
#include <vector>

#include "core/op/body/shape_decision.h"

namespace fusion {

/// What building a graph decided about one node: numbers that folding compared or rounded, and
/// those of OpDef::decisions. Two traces of one model, for different values of its open dims, can
/// be compared number by number.
struct NodeDecisions {
  std::string node;  // the client's name
  std::string op;
  std::vector<ShapeDecision> decisions;
};

/// In the order in which nodes were added. Nodes without decisions are left out.
using ShapeTrace = std::vector<NodeDecisions>;

}  // namespace fusion
