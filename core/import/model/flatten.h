#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/import/model/functions.h"

namespace fusion {

/// Position of a value in FlatModel::values.
using ValueRef = int32_t;
inline constexpr ValueRef kNoValueRef = -1;

/// Bodies within bodies, and in the functions that those call.
inline constexpr int kMaxBodyDepth = 64;

/// Attribute values that the body of a function may refer to.
using AttributeScope = std::map<std::string, const onnx::AttributeProto*>;

/// Who gives a value.
struct FlatValue {
  enum Kind : uint8_t { kUndefined, kInput, kInitializer, kNode };
  Kind kind = kUndefined;
  /// The client's name; inside a function behind the names of the calls: "decoder/attn/scores".
  std::string name;
  /// kNode: position in FlatModel::nodes. kInput, kInitializer: position in the graph's list.
  int index = 0;
};

struct FlatNode {
  const onnx::NodeProto* proto = nullptr;
  /// The client's name, or that of the first output if the node has none.
  std::string name;
  /// What the node calls; "" and "ai.onnx" are both "".
  std::string domain;
  std::string op;
  /// Version of `domain` in force for this node; 0 if none is imported.
  int64_t opset = 0;
  /// Those that the node names, then those that its bodies (If, Loop, Scan) use from outside.
  std::vector<ValueRef> inputs;
  std::vector<ValueRef> outputs;
  /// Null in the main graph.
  const AttributeScope* attributes = nullptr;
  /// Versions in force for the node's bodies.
  const OpsetMap* opsets = nullptr;
  /// Names of the last of `inputs`.
  std::vector<std::string> captured;
};

/// What flattening a model and its bodies has cost so far, against one limit for all of them.
struct FlattenCost {
  int64_t steps = 0;
  /// Inputs, outputs and attributes of nodes and calls, and names that bodies look at.
  int64_t items = 0;
};

/// A model's main graph, or the body of a node, with names resolved and functions inlined; points
/// into the model. Every value has one definition. Order of the nodes: as in the model, a
/// function's body in place of its call.
struct FlatModel {
  std::vector<FlatNode> nodes;
  std::vector<FlatValue> values;
  /// Values of the graph itself, not of functions.
  std::unordered_map<std::string, ValueRef> by_name;
  /// Attributes bound at function calls, and the functions that own default values.
  std::deque<AttributeScope> scopes;
  std::shared_ptr<const FunctionTable> functions;
  std::shared_ptr<const OpsetMap> opsets;
  std::shared_ptr<FlattenCost> cost;
};

/// InvalidArgument for a name that is defined twice (other than by Constant nodes, where the last
/// counts), a function that calls itself or gives no value
/// to an output; ResourceExhausted for more than kMaxImportedNodes nodes and calls, or calls nested
/// deeper than 64. A use of an undefined name is an error only if the node matters: kUndefined.
absl::StatusOr<FlatModel> FlattenModel(const onnx::ModelProto& model);

/// The same of `body`, an attribute of a node `of` of `outer`: its inputs, and what it captures,
/// are values of kind kInput. Names of its nodes are not prefixed. Counts against the limits of
/// `outer`, whose cost it shares.
absl::StatusOr<FlatModel> FlattenBody(const FlatModel& outer, const FlatNode& of,
                                      const onnx::GraphProto& body);

}  // namespace fusion
