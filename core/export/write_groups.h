#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Keys and values, in the order in which they are written.
using Properties = std::vector<std::pair<std::string, std::string>>;

/// A group of a plan, as nodes of the model that was planned.
struct ModelGroup {
  int number = 0;          // of the group in its plan; part of names
  std::string label;       // "MatMul+Add+Relu": becomes part of a name, cleaned and cut
  std::vector<int> nodes;  // positions in GraphProto::node; may repeat
  Properties properties;   // string attributes of the node that the group becomes
};

/// What became of a group.
struct WrittenGroup {
  std::vector<std::string> functions;  // op types of its nodes; several: it had to be cut
  int nodes = 0;                       // of the model, inside of them
  /// Nodes of the group that are not inside: parts of a node computed here and the rest in a later
  /// group, whose node it is then; and what WriteGroups leaves as it is.
  int left_out = 0;

  bool whole() const { return functions.size() == 1 && left_out == 0; }
};

struct WrittenModel {
  std::vector<WrittenGroup> groups;  // as given
  int plain_nodes = 0;               // of the main graph, that stay what they were
};

/// Writes groups of a plan into the model that was planned: each becomes one node of kGroupDomain
/// (core/onnx/group_calls.h), which calls a function of the model whose body is the group's nodes,
/// unchanged. The model computes what it computed, in any runtime that knows functions (ONNX
/// IR version 8), and OpenGroups undoes it.
///
///   ASSIGN_OR_RETURN(WrittenModel written, WriteGroups(groups, {{"fusiond.isa", "avx2"}},
///   &model));
///
/// - Each node is written once. One that several groups have goes to the last of them.
/// - Nodes of no group that lie between those of a group go into it. Where nodes of other groups
/// do,
///   the group is cut into several nodes, each a set that nothing leaves and comes back to.
/// - Nodes with bodies (If, Loop, Scan), Constant nodes, everything that no group computes, and ops
///   of ONNX Runtime's own that crash it in functions (LayerNormalization before opset 17) stay
///   what they are: the file is complete. Nodes come out in topological order.
/// - Initialisers, external data and functions of the model are not touched, and not read.
/// - Names of functions are of [A-Za-z0-9_]; names of values and of nodes stay.
/// - `metadata` replaces the entries of the model's metadata whose keys begin with kGroupMetadata.
/// - The IR version becomes 8 if it was less. Before 4 initialisers had to be inputs, too: those
/// are
///   no inputs any more.
///
/// InvalidArgument, naming node or tensor, for a model whose nodes form a cycle or give one value
/// twice, or a node that does not exist; `model` is as it was then. Pure.
absl::StatusOr<WrittenModel> WriteGroups(const std::vector<ModelGroup>& groups,
                                         const Properties& metadata, onnx::ModelProto* model);

}  // namespace fusion
