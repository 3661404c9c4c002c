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
  /// Nodes whose inputs are all constants are evaluated at once if their outputs take no more bytes
  /// than this, so that exporters' shape arithmetic never reaches the graph. 0: never fold.
  int64_t fold_limit_bytes = int64_t{2} << 20;
  /// Limits for all folding of one graph together, so that a hostile graph cannot make building it
  /// expensive: bytes of folded constants, and elements read plus loop points evaluated. What is
  /// beyond them stays a node.
  int64_t fold_total_bytes = int64_t{64} << 20;
  double fold_total_points = 0x1p30;
  /// Primitive ops of all nodes together, folded ones included, and bytes of the constants of their
  /// steps.
  int64_t loop_op_limit = kMaxGraphLoopOps;
  int64_t step_constant_byte_limit = kMaxGraphStepConstantBytes;
  /// Tensors whose nodes stay nodes, by name. May be null; outlives the builder.
  const std::set<std::string>* unfolded = nullptr;
  /// Gets the dims of what is folded, by name of the tensor. May be null; outlives the builder.
  std::map<std::string, Dims>* folded = nullptr;
  /// Gets what is decided about nodes as they are added. May be null; outlives the builder.
  ShapeTrace* trace = nullptr;
};

/// Builds a Graph node by node, in topological order; types are inferred and checked as nodes are
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

  SymbolId AddSymbol(SymbolDecl symbol);
  TensorId AddInput(std::string name, TensorType type);
  TensorId AddWeight(std::string name, TensorType type);
  /// `client_has_bytes`: the constant is an initialiser of the client's model under this name.
  TensorId AddConstant(std::string name, HostTensor value, bool client_has_bytes = false);

  /// Adds a node with one output. ResourceExhausted where it takes the graph beyond
  /// a limit of BuilderOptions. kNoTensor marks an absent optional input.
  absl::StatusOr<TensorId> AddNode(std::string_view op, std::vector<TensorId> inputs,
                                   AttrMap attrs = {}, std::string name = "",
                                   std::string output_name = "");
  /// Adds a node with as many outputs as there are names; one with counted outputs
  /// (OpDef::counted) with all it can have. Unimplemented where it would need to know how many
  /// elements of a counted input there are.
  absl::StatusOr<std::vector<TensorId>> AddMultiNode(const OpDef& def, std::vector<TensorId> inputs,
                                                     AttrMap attrs, std::string name,
                                                     std::vector<std::string> output_names);

  /// Adds what the caller decided about a node from numbers that it found in constants. Nothing
  /// happens without BuilderOptions::trace.
  void Trace(std::string_view node, std::string_view op, const DecisionLog& log);

  /// Outputs keep the order of the calls.
  void MarkOutput(TensorId id);

  /// An input and an output that are marked already lie in one piece of memory. InvalidArgument,
  /// with what is wrong, unless their types are equal but for `dim` and neither is shared yet.
  /// Whether the output holds the input's elements is for BuildProgram to see.
  absl::Status ShareBuffer(const SharedBuffer& shared);
  /// Says where the elements of an input or a marked output lie. InvalidArgument, with what is
  /// wrong, unless CheckBoundStrides holds (where dims are symbols: for their number), nothing said
  /// so before, and it lies in no shared buffer.
  absl::Status BindStrides(const BoundStrides& bound);

  const std::vector<TensorId>& inputs() const { return graph_.inputs_; }
  const std::vector<TensorId>& outputs() const { return graph_.outputs_; }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  /// The constant behind a tensor, or nullptr if it is not one.
  const HostTensor* ConstantValue(TensorId id) const { return graph_.tensor(id).value.get(); }

  /// A builder of a body of this graph: it goes on within the limits of this one, which Settle with
  /// it charges for what it folded.
  GraphBuilder Within(std::string name) const;
  void Settle(const GraphBuilder& inner);

  /// The graph; the builder is empty afterwards. Counts of its outputs are outputs behind them.
  /// InvalidArgument if there is no output, a tensor is too large (CheckTensorSize) or all together
  /// have more than kMaxTensorBytes.
  absl::StatusOr<Graph> Build();

  /// `graph` with Graph::shape_classes, one for each tensor.
  static Graph WithShapeClasses(Graph graph, std::vector<int> classes);

 private:
  TensorId AddTensor(Tensor tensor);
  void AddCounts();
  /// `log` gets what is decided; null: nobody asks.
  absl::StatusOr<std::vector<HostTensor>> Fold(const OpDef& def, const OpCall& call,
                                               const std::vector<TensorId>& inputs,
                                               DecisionLog* log);
  DecisionLog OfConstants(const std::vector<TensorId>& inputs) const;
  absl::StatusOr<std::vector<std::optional<CountedDim>>> CountsOf(
      const OpCall& call, const std::vector<TensorId>& inputs) const;
  /// InvalidArgument, ResourceExhausted for a call that the graph cannot take.
  absl::StatusOr<std::vector<TensorType>> TypesOf(const OpCall& call);
  bool CanFold(const OpDef& def, const std::vector<TensorId>& inputs,
               const std::vector<TensorType>& outputs, const std::vector<std::string>& names) const;

  Graph graph_;
  BuilderOptions options_;
  double bytes_ = 0;  // of the tensors of static shape
  StepCount count_;
  absl::Status too_large_ = absl::OkStatus();
};

}  // namespace fusion
