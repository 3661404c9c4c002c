#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/build/builder.h"
#include "core/import/bodies/control_flow.h"
#include "core/import/bodies/followed_passes.h"
#include "core/import/bodies/sequences.h"
#include "core/import/graph_source.h"
#include "core/import/model/declared_types.h"
#include "core/import/model/flatten.h"
#include "core/import/model/normalise.h"
#include "core/import/model/topological_order.h"

namespace fusion {

/// One import: converts the flattened model to the graph, node by node. The model and the options
/// must outlive it. One use; not thread-safe.
class OnnxImporter {
 public:
  OnnxImporter(const onnx::ModelProto& model, const ImportOptions& options)
      : graph_(model.graph()),
        model_(model),
        options_(options),
        rule_(model.graph(), options.inline_limit_bytes),
        symbols_(options.dim_bindings, options.ranged_dims),
        main_builder_(
            model.graph().name(),
            {.unfolded = options.unfolded, .folded = options.folded, .trace = options.trace}) {}

  absl::StatusOr<Graph> Run();

 private:
  absl::StatusOr<Graph> Import();

  // A graph whose nodes are being added: the main graph or a body of a node.
  struct Body {
    const onnx::GraphProto* graph = nullptr;
    FlatModel flat;
    std::vector<ValueRef> wanted;
    std::vector<int> order;
    std::vector<bool> used;     // by value: read by a needed node, or an output
    std::vector<TensorId> ids;  // by value
    // Like `ids`, for initialisers and Constant nodes only: all passes share them.
    std::vector<TensorId> constants;
    int64_t constants_of = 0;  // number of the graph that they are in
    std::string prefix;        // of names of nodes and tensors
    // Values that are collections.
    std::unordered_map<ValueRef, Collection> collections;

    absl::Status SetOrder() {
      ASSIGN_OR_RETURN(order, TopologicalOrder(flat, wanted));
      used.assign(flat.values.size(), false);
      for (ValueRef ref : wanted) used[static_cast<size_t>(ref)] = true;
      for (int index : order) {
        for (ValueRef ref : flat.nodes[static_cast<size_t>(index)].inputs) {
          if (ref != kNoValueRef) used[static_cast<size_t>(ref)] = true;
        }
      }
      return absl::OkStatus();
    }
  };

  const FlatValue& value(ValueRef ref) const;

  absl::Status AddNodes();

  absl::Status CountNode();

  // Counts the copy of a collection as work, because it adds no node.
  static void CountElements(const Collection& collection);

  // The flattened body `graph` of a node of the current body. It is cached.
  absl::StatusOr<Body*> BodyOf(const FlatNode& node, const onnx::GraphProto& graph);

  // Adds a copy of a body of `node`. `node_inputs` are the inputs of the node, `inputs` those of
  // the body.
  absl::StatusOr<std::vector<Item>> AddBodyOf(const FlatNode& node,
                                              const std::vector<Item>& node_inputs,
                                              const onnx::GraphProto& graph,
                                              const std::vector<Item>& inputs,
                                              const std::string& name);

  absl::StatusOr<std::vector<Item>> AddBodyNodes();

  // Converts a body of `node` to a graph of its own, for a loop that is not unrolled. Values that
  // it reads from outside become further inputs, except constants and values that are known at
  // import.
  absl::StatusOr<RepeatBody> MakeBodyOf(const FlatNode& node, const std::vector<Item>& node_inputs,
                                        const onnx::GraphProto& graph,
                                        const std::vector<BodyInput>& inputs, Condition condition);

  static absl::StatusOr<RepeatBody> BodyWith(std::vector<TensorId> outputs, Condition condition,
                                             const std::string& name,
                                             const std::map<TensorId, TensorId>& held,
                                             GraphBuilder* builder);

  // Reads inputs first, so that their dims become the first symbols.
  absl::Status ReadTypes();

  // Records the declared type of a tensor. Declarations for unknown names are ignored.
  absl::Status Declare(const onnx::ValueInfoProto& info, std::string_view kind);

  absl::Status AddInputs();

  // Collects the outputs of the graph, then those to keep.
  absl::Status FindWanted();

  bool IsUsed(ValueRef ref) const;

  // Ignores types declared in bodies: their dims may differ from pass to pass.
  absl::Status CheckType(ValueRef ref, TensorId id) const;

  // The tensor of a value. An initialiser is added at its first use.
  absl::StatusOr<TensorId> TensorOf(ValueRef ref);

  // `by_name`: the client can provide the bytes under this name.
  absl::StatusOr<TensorId> AddConstant(const onnx::TensorProto& tensor, const std::string& name,
                                       bool by_name, std::string_view what);

  absl::StatusOr<std::vector<TensorId>> AddConstantNode(const FlatNode& node,
                                                        const std::string& output);

  // ReduceMax and ReduceMin of bools are computed on bytes that are 0 or 1.
  absl::StatusOr<std::vector<TensorId>> AddNormalNode(NormalNode normal, const std::string& name,
                                                      const std::vector<std::string>& names);

  // A random node without a seed gets the number of such nodes before it as its seed. So every run
  // draws the same numbers.
  void SetSeed(const FlatNode& node, NormalNode* normal);

  absl::StatusOr<std::vector<TensorId>> AddOperator(const FlatNode& node,
                                                    std::vector<TensorId> inputs,
                                                    std::vector<std::string> names);

  // Rewrites an error of a node that refers to inputs by number: adds the model's names of the
  // inputs, and a hint if dims of theirs are open.
  absl::Status WithInputs(const absl::Status& status, const std::vector<TensorId>& inputs) const;

  AddBody AddsBodiesOf(const FlatNode& node, const std::vector<Item>& inputs);

  // Adds a control flow node. Its results get the names of the node's outputs.
  absl::Status AddFlow(const FlatNode& node);

  static absl::Status HasNoOutput(const FlatNode& node, size_t output);

  absl::StatusOr<std::vector<TensorId>> AddFlex(const FlatNode& node,
                                                const std::vector<TensorId>& inputs,
                                                const std::string& output);

  absl::StatusOr<std::vector<Item>> ItemsOf(const std::vector<ValueRef>& refs);

  // Adds a node that reads or returns sequences or optionals.
  absl::Status AddCollecting(const FlatNode& node);

  absl::Status Give(ValueRef ref, Item item);

  // Adds the node's body once for each element of its first input, a sequence. Of further inputs,
  // sequences pass one element to each copy, tensors are passed whole.
  absl::Status AddSequenceMap(const FlatNode& node, const std::vector<Item>& items);

  // Names of the node's outputs in the graph. The total length of all names is limited.
  absl::StatusOr<std::vector<std::string>> NamesOf(const FlatNode& node);

  absl::Status AddNode(const FlatNode& node);

  struct Declaration {
    DeclaredType type;
    std::string what;
  };

  const onnx::GraphProto& graph_;
  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  double follow_points_ = kMaxFollowPoints;
  InlineRule rule_;
  SymbolTable symbols_;
  GraphBuilder main_builder_;
  GraphBuilder* builder_ = &main_builder_;  // of the graph to which nodes are added
  int64_t graphs_ = 0;                      // number of graphs begun so far
  int64_t graph_number_ = 0;                // of builder_
  Body main_;
  Body* body_ = &main_;
  std::map<std::pair<const FlatNode*, const onnx::GraphProto*>, std::unique_ptr<Body>> bodies_;
  int added_ = 0;
  int64_t unseeded_ = 0;  // random nodes without a seed so far
  int body_depth_ = 0;
  int64_t name_bytes_ = 0;
  int64_t custom_bytes_ = 0;  // of the bodies of custom ops
  std::vector<ValueRef> input_refs_;
  std::vector<DType> input_dtypes_;
  std::vector<Shape> input_shapes_;  // local
  std::unordered_map<ValueRef, std::vector<Declaration>> declared_;
};

}  // namespace fusion
