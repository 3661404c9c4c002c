#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/shape_trace.h"
#include "core/op/body/tensor_size.h"

namespace fusion {

struct BuilderOptions {
  /// Nodes whose inputs are all constants are evaluated at once if their outputs take at most this
  /// many bytes. So shape arithmetic of exporters does not reach the graph. 0: never fold.
  int64_t fold_limit_bytes = int64_t{2} << 20;
  /// Limits for all folding of one graph, so that a hostile graph cannot make building it
  /// expensive: bytes of folded constants, and elements read plus loop points evaluated. Nodes
  /// beyond a limit stay nodes.
  int64_t fold_total_bytes = int64_t{64} << 20;
  double fold_total_points = 0x1p30;
  /// Limits for all nodes together, folded ones included: primitive ops, and bytes of the constants
  /// of their steps.
  int64_t loop_op_limit = kMaxGraphLoopOps;
  int64_t step_constant_byte_limit = kMaxGraphStepConstantBytes;
  /// Names of tensors whose nodes are not folded. May be null; outlives the builder.
  const std::set<std::string>* unfolded = nullptr;
  /// Receives the dims of folded tensors, by tensor name. May be null; outlives the builder.
  std::map<std::string, Dims>* folded = nullptr;
  /// Receives the decisions about nodes as they are added. May be null; outlives the builder.
  ShapeTrace* trace = nullptr;
};

/// Builds a Graph node by node, in topological order. Types are inferred and checked as nodes are
/// added.
///
///   GraphBuilder b("mlp");
///   TensorId x = b.AddInput("x", {DType::kF32, Shape{8, 64}});
///   TensorId w = b.AddWeight("w", {DType::kF32, Shape{64, 64}});
///   ASSIGN_OR_RETURN(TensorId y, b.AddNode("MatMul", {x, w}, {}, "fc"));
///   b.MarkOutput(y);
///   ASSIGN_OR_RETURN(Graph graph, b.Build());
///
/// Not thread-safe. Errors name the node and what was expected.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name = "", BuilderOptions options = {});

  /// The functions below that add symbols, inputs, weights and constants cannot fail. Build returns
  /// the error if a tensor is too large.
  SymbolId AddSymbol(SymbolDecl symbol);
  TensorId AddInput(std::string name, TensorType type);
  TensorId AddWeight(std::string name, TensorType type);
  /// `client_has_bytes`: the constant is an initialiser of the client's model under this name.
  TensorId AddConstant(std::string name, HostTensor value, bool client_has_bytes = false);

  /// Adds a node and returns its first output. kNoTensor in `inputs` marks an absent optional
  /// input. Unimplemented for an unknown op; ResourceExhausted if the graph exceeds a limit of
  /// BuilderOptions; else as InferOutputTypes, CheckTensorSize and InheritCounts.
  absl::StatusOr<TensorId> AddNode(std::string_view op, std::vector<TensorId> inputs,
                                   AttrMap attrs = {}, std::string name = "",
                                   std::string output_name = "");
  /// Adds a node with one output per name and returns the outputs. If the op has OpDef::counted but
  /// not OpDef::outputs, it gets all its outputs: missing names are empty, and the last output is
  /// the count. Errors as AddNode.
  absl::StatusOr<std::vector<TensorId>> AddMultiNode(const OpDef& def, std::vector<TensorId> inputs,
                                                     AttrMap attrs, std::string name,
                                                     std::vector<std::string> output_names);

  /// Adds decisions of the caller about a node, from numbers that it found in constants. No effect
  /// without BuilderOptions::trace.
  void Trace(std::string_view node, std::string_view op, const DecisionLog& log);

  /// Outputs have the order of the calls.
  void MarkOutput(TensorId id);

  /// Places an input and an already marked output in one piece of memory. InvalidArgument, with the
  /// reason, unless their types are equal except for `dim` and neither is shared or has strides
  /// yet. BuildProgram checks that the output really holds the input's elements.
  absl::Status ShareBuffer(const SharedBuffer& shared);
  /// Sets the strides of an input or an already marked output. InvalidArgument, with the reason, if
  /// CheckBoundStrides fails (for symbolic dims only the number of strides is checked), if it has
  /// strides already or if it lies in a shared buffer.
  absl::Status BindStrides(const BoundStrides& bound);

  const std::vector<TensorId>& inputs() const { return graph_.inputs_; }
  const std::vector<TensorId>& outputs() const { return graph_.outputs_; }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  /// The value of a constant tensor; nullptr for other tensors.
  const HostTensor* ConstantValue(TensorId id) const { return graph_.tensor(id).value.get(); }

  /// Creates a builder for a loop body of this graph. It starts with the limits that remain here.
  /// Pass it to Settle afterwards, which charges this builder for what it folded.
  GraphBuilder Within(std::string name) const;
  void Settle(const GraphBuilder& inner);

  /// Returns the graph; the builder is empty afterwards. Counts of outputs become outputs behind
  /// the model's. InvalidArgument if there is no output, a tensor is too large (CheckTensorSize) or
  /// all together exceed kMaxTensorBytes.
  absl::StatusOr<Graph> Build();

  /// `graph` with these Graph::shape_classes, one for each tensor.
  static Graph WithShapeClasses(Graph graph, std::vector<int> classes);

 private:
  TensorId AddTensor(Tensor tensor);
  void AddCounts();
  /// `log` receives the decisions; may be null.
  absl::StatusOr<std::vector<HostTensor>> Fold(const OpDef& def, const OpCall& call,
                                               const std::vector<TensorId>& inputs,
                                               DecisionLog* log);
  DecisionLog OfConstants(const std::vector<TensorId>& inputs) const;
  absl::StatusOr<std::vector<std::optional<CountedDim>>> CountsOf(
      const OpCall& call, const std::vector<TensorId>& inputs) const;
  /// InvalidArgument or ResourceExhausted for a call that the graph cannot take.
  absl::StatusOr<std::vector<TensorType>> TypesOf(const OpCall& call);
  bool CanFold(const OpDef& def, const std::vector<TensorId>& inputs,
               const std::vector<TensorType>& outputs, const std::vector<std::string>& names) const;

  Graph graph_;
  BuilderOptions options_;
  double bytes_ = 0;  // of the tensors with static shapes
  StepCount count_;
  absl::Status too_large_ = absl::OkStatus();
};

}  // namespace fusion
