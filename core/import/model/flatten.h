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

/// Maximum nesting of bodies, including those in called functions.
inline constexpr int kMaxBodyDepth = 64;

/// Attribute values that the body of a function can refer to.
using AttributeScope = std::map<std::string, const onnx::AttributeProto*>;

/// The definition of a value.
struct FlatValue {
  enum Kind : uint8_t { kUndefined, kInput, kInitializer, kNode };
  Kind kind = kUndefined;
  /// The client's name. Inside a function it is prefixed by the names of the calls:
  /// "decoder/attn/scores".
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
  /// Version of `domain` in force for this node; 0 if it is not imported.
  int64_t opset = 0;
  /// The inputs that the node lists, then the outer values that its bodies (If, Loop, Scan) use.
  std::vector<ValueRef> inputs;
  std::vector<ValueRef> outputs;
  /// Attributes of the enclosing function call; null in the main graph.
  const AttributeScope* attributes = nullptr;
  /// Versions in force in the node's bodies.
  const OpsetMap* opsets = nullptr;
  /// Names of the outer values, the last ones of `inputs`.
  std::vector<std::string> captured;
};

/// Work done so far for flattening a model and its bodies; all share one limit.
struct FlattenCost {
  int64_t steps = 0;
  /// Inputs, outputs and attributes of nodes and calls, and names that bodies look up.
  int64_t items = 0;
};

/// The main graph of a model or the body of a node, with names resolved and functions inlined.
/// Points into the model, which must outlive it. Every value has one definition. Nodes are in model
/// order, with a function's body in place of its call.
struct FlatModel {
  std::vector<FlatNode> nodes;
  std::vector<FlatValue> values;
  /// Values of the graph itself, without those of functions.
  std::unordered_map<std::string, ValueRef> by_name;
  /// Attributes bound at function calls; `functions` owns default values.
  std::deque<AttributeScope> scopes;
  std::shared_ptr<const FunctionTable> functions;
  std::shared_ptr<const OpsetMap> opsets;
  std::shared_ptr<FlattenCost> cost;
};

/// InvalidArgument for a name that is defined twice (for Constant nodes the last definition
/// counts), a recursive function, or a function that does not define an output. ResourceExhausted
/// for more than kMaxImportedNodes nodes and calls, calls nested deeper than 64, or bodies nested
/// deeper than kMaxBodyDepth. An undefined name becomes kUndefined; TopologicalOrder reports it if
/// a needed node uses it.
absl::StatusOr<FlatModel> FlattenModel(const onnx::ModelProto& model);

/// Flattens `body`, an attribute of node `of` of `outer`. Its inputs and the outer values that it
/// uses become values of kind kInput. Names of its nodes get no prefix. Shares the cost and the
/// limits of `outer`, which must outlive the result. Errors as FlattenModel.
absl::StatusOr<FlatModel> FlattenBody(const FlatModel& outer, const FlatNode& of,
                                      const onnx::GraphProto& body);

}  // namespace fusion
