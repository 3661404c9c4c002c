#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Keys and values, in the order in which they are written.
using Properties = std::vector<std::pair<std::string, std::string>>;

/// A group of a plan, as nodes of the planned model.
struct ModelGroup {
  int number = 0;          // number of the group in its plan; becomes part of names
  std::string label;       // "MatMul+Add+Relu"; becomes part of a name, sanitised and truncated
  std::vector<int> nodes;  // positions in GraphProto::node; may repeat
  Properties properties;   // become string attributes of the group's node
};

/// The result for one group.
struct WrittenGroup {
  std::vector<std::string> functions;  // op types of its nodes; more than one if it was split
  int nodes = 0;                       // nodes of the model inside them
  /// Nodes of the group that are not inside: nodes that a later group completes (they belong to
  /// that group), and nodes that WriteGroups leaves unchanged.
  int left_out = 0;

  bool whole() const { return functions.size() == 1 && left_out == 0; }
};

struct WrittenModel {
  std::vector<WrittenGroup> groups;  // in the order of the argument
  int plain_nodes = 0;               // unchanged nodes of the main graph
};

/// Writes groups of a plan into the planned model. Each group becomes one node of kGroupDomain
/// (core/onnx/group_calls.h), which calls a function of the model whose body is the group's nodes,
/// unchanged. The model computes the same results, in any runtime that supports functions (ONNX IR
/// version 8). OpenGroups is the inverse.
///
///   ASSIGN_OR_RETURN(WrittenModel written,
///                    WriteGroups(groups, {{"fusiond.isa", "avx2"}}, &model));
///
/// - Each node is written once. A node of several groups goes to the last of them.
/// - Nodes of no group that lie between nodes of a group join it. If nodes of other groups lie
///   between, the group is split into several convex sets, one node each.
/// - Unchanged stay: nodes with bodies (If, Loop, Scan), Constant nodes, nodes of no group, and ops
///   on which ONNX Runtime crashes in functions (LayerNormalization before opset 17). So the file
///   is complete. Nodes are written in topological order.
/// - Initialisers, external data and functions of the model are neither changed nor read.
/// - Names of functions consist of [A-Za-z0-9_]. Names of values and nodes stay.
/// - `metadata` replaces the model's metadata entries whose keys begin with kGroupMetadata.
/// - The IR version becomes at least 8. Before version 4 initialisers had to be inputs too; these
///   inputs are removed.
///
/// InvalidArgument, naming node or tensor, if nodes form a cycle, two nodes define one value, or a
/// position in `groups` does not exist. On error `model` is unchanged. Pure.
absl::StatusOr<WrittenModel> WriteGroups(const std::vector<ModelGroup>& groups,
                                         const Properties& metadata, onnx::ModelProto* model);

}  // namespace fusion
