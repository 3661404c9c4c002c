#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/op/op_def.h"
#include "core/tensor/bound_strides.h"
#include "core/tensor/host_tensor.h"
#include "core/tensor/output_extent.h"
#include "core/tensor/shared_buffer.h"

namespace fusion {

using TensorId = int32_t;
using NodeId = int32_t;
inline constexpr TensorId kNoTensor = -1;
inline constexpr NodeId kNoNode = -1;

/// Limit for the primitive ops, views included, that the nodes of a graph expand to. Unrolled
/// sequences and pads multiply nodes.
inline constexpr int64_t kMaxGraphLoopOps = int64_t{1} << 18;
/// Limit for the bytes of constants that this expansion creates.
inline constexpr int64_t kMaxGraphStepConstantBytes = int64_t{1} << 30;

enum class TensorKind : uint8_t {
  kInput,     // passed at every run
  kWeight,    // constant that the client holds: name, type and shape are known, its bytes are not
  kConstant,  // constant whose bytes are part of the graph (scalars, folded shape arithmetic,
              // masks)
  kIntermediate,  // written by a node
};

/// A dim whose number of elements only a run determines. Its extent in the type is the maximum.
struct CountedDim {
  int dim = 0;
  TensorId count = kNoTensor;  // i64 scalar with the number of elements
  bool operator==(const CountedDim&) const = default;
};

struct Tensor {
  std::string name;  // the client's name; may be empty, need not be unique
  TensorType type;
  TensorKind kind = TensorKind::kIntermediate;
  std::shared_ptr<const HostTensor> value;  // kConstant
  /// The client holds these bytes under `name` (an initialiser). So a constant may become a kernel
  /// argument.
  bool client_has_bytes = false;
  NodeId producer = kNoNode;
  std::optional<CountedDim> counted;
};

struct Node {
  std::string name;
  const OpDef* def = nullptr;
  std::vector<TensorId> inputs;  // kNoTensor where an optional input is absent
  std::vector<TensorId> outputs;
  AttrMap attrs;
};

/// An operator graph in SSA form: immutable, topologically ordered, every type known. GraphBuilder
/// creates it. Copies are cheap (constants are shared). Safe to read from any thread.
class Graph {
 public:
  const std::string& name() const { return name_; }
  const std::vector<SymbolDecl>& symbols() const { return symbols_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<TensorId>& inputs() const { return inputs_; }
  /// The outputs of the model, then the counts that output_extents() refers to.
  const std::vector<TensorId>& outputs() const { return outputs_; }
  const std::vector<OutputExtent>& output_extents() const { return output_extents_; }
  /// In the order of declaration.
  const std::vector<SharedBuffer>& shared_buffers() const { return shared_buffers_; }
  /// Inputs and outputs that are not dense in the caller's memory, in the order of declaration.
  const std::vector<BoundStrides>& bound_strides() const { return bound_strides_; }
  /// For a member of a family of shapes: a class for each tensor. Tensors of one class have equal
  /// shapes in every member. Tensors of class 0 have the same shape in all members. Empty: nothing
  /// is known about other members.
  const std::vector<int>& shape_classes() const { return shape_classes_; }
  size_t model_outputs() const { return ModelOutputs(outputs_.size(), output_extents_); }

  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }

  /// The op call of a node, from which properties are derived (core/op/derive.h).
  OpCall Call(NodeId id) const;

  /// 'node "attn/softmax_3" (Softmax)': names a node in messages.
  std::string Describe(NodeId id) const;

 private:
  friend class GraphBuilder;
  std::string name_;
  std::vector<SymbolDecl> symbols_;
  std::vector<Tensor> tensors_;
  std::vector<Node> nodes_;
  std::vector<TensorId> inputs_;
  std::vector<TensorId> outputs_;
  std::vector<OutputExtent> output_extents_;
  std::vector<SharedBuffer> shared_buffers_;
  std::vector<BoundStrides> bound_strides_;
  std::vector<int> shape_classes_;
};

/// Describes a node that is not (yet) in a graph.
std::string DescribeNode(std::string_view name, std::string_view op);

/// Checks the invariants of a Graph: ids in range, single assignment, topological order, types as
/// the ops infer them. Internal, naming node or tensor, if one is violated. Graphs from
/// GraphBuilder pass; this guards rewrites and parsers.
absl::Status Verify(const Graph& graph);

}  // namespace fusion
