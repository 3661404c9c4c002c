#pragma once

#include <onnx/onnx_pb.h>

#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/export/contract.h"

namespace fusion {

/// A value of a main graph.
struct ModelValue {
  int writer = -1;           // node; -1: an input or initialiser
  std::vector<int> readers;  // nodes, ascending, bodies of theirs included
  bool is_output = false;    // of the graph
};

/// Who writes and reads what in the main graph of a model. Refers to the strings of the model.
struct ModelGraph {
  std::unordered_map<std::string_view, ModelValue> values;
  NodeGraph nodes;  // everything is free
};

/// InvalidArgument, naming a node, for nodes that form a cycle or give one value twice (other than
/// Constant nodes, of which the last counts).
absl::StatusOr<ModelGraph> ReadModelGraph(const onnx::GraphProto& graph);

/// True for a node with bodies (If, Loop, Scan): what they use of outside is not among its inputs.
bool HasBodies(const onnx::NodeProto& node);

/// 'node "attn/softmax" (Softmax)'; by its first output if it has no name.
std::string DescribeProto(const onnx::NodeProto& node);

}  // namespace fusion
