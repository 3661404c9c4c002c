#pragma once

#include <onnx/onnx_pb.h>

#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/export/contract.h"

namespace fusion {

/// A value of a main graph, with its writer and readers.
struct ModelValue {
  int writer = -1;           // position of the node; -1: an input or initialiser
  std::vector<int> readers;  // positions of nodes, ascending; also those whose bodies read it
  bool is_output = false;    // of the graph
};

/// Writers and readers of all values in the main graph of a model. Refers to strings of the model,
/// which must outlive it.
struct ModelGraph {
  std::unordered_map<std::string_view, ModelValue> values;
  NodeGraph nodes;  // every node is free
};

/// InvalidArgument, naming a node, if nodes form a cycle or two nodes define one value (for
/// Constant nodes the last definition counts).
absl::StatusOr<ModelGraph> ReadModelGraph(const onnx::GraphProto& graph);

/// True for a node with bodies (If, Loop, Scan). Outer values that the bodies use are not among its
/// inputs.
bool HasBodies(const onnx::NodeProto& node);

/// 'node "attn/softmax" (Softmax)'. A node without a name is described by its first output.
std::string DescribeProto(const onnx::NodeProto& node);

}  // namespace fusion
