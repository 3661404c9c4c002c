#include "core/graph/heap_bytes.h"

#include <map>

#include "core/op/repeat.h"

namespace fusion {
namespace {

// A node of std::map without its key and value.
constexpr int64_t kMapNodeBytes = 40;

int64_t HeapBytes(const TensorType& type) {
  const std::vector<Dim>& dims = type.shape.dims();
  auto bytes = static_cast<int64_t>(dims.capacity() * sizeof(Dim)) + kAllocationBytes;
  for (const Dim& dim : dims) bytes += fusion::HeapBytes(dim.terms());
  return bytes;
}

int64_t SharedBytes(const HostTensor* tensor) {
  return tensor == nullptr ? 0 : tensor->byte_size() + static_cast<int64_t>(sizeof(*tensor));
}

int64_t HeapBytes(const AttrMap& attrs);

int64_t SharedBytes(const Repeat* repeat) {
  if (repeat == nullptr) return 0;
  auto bytes =
      static_cast<int64_t>(sizeof(*repeat) + repeat->inputs.size() * sizeof(Repeat::Input) +
                           repeat->outputs.size() * sizeof(Repeat::Output));
  for (const Repeat::Input& input : repeat->inputs) bytes += HeapBytes(input.type);
  for (const Decomposition::Step& step : repeat->steps) {
    bytes +=
        static_cast<int64_t>(sizeof(step)) + fusion::HeapBytes(step.inputs) + HeapBytes(step.attrs);
    if (step.constant.has_value()) bytes += SharedBytes(&*step.constant);
  }
  return bytes;
}

struct ValueBytes {
  int64_t operator()(int64_t) const { return 0; }
  int64_t operator()(double) const { return 0; }
  int64_t operator()(const std::string& text) const { return fusion::HeapBytes(text); }
  template <typename T>
  int64_t operator()(const std::vector<T>& values) const {
    return fusion::HeapBytes(values);
  }
  template <typename T>
  int64_t operator()(const std::shared_ptr<const T>& shared) const {
    return SharedBytes(shared.get());
  }
};

int64_t HeapBytes(const AttrMap& attrs) {
  int64_t bytes = 0;
  for (const auto& entry : attrs) {
    bytes += static_cast<int64_t>(sizeof(entry)) + kMapNodeBytes + fusion::HeapBytes(entry.first) +
             std::visit(ValueBytes(), entry.second);
  }
  return bytes;
}

}  // namespace

int64_t HeapBytes(const Graph& graph) {
  auto bytes = static_cast<int64_t>(graph.tensors().capacity() * sizeof(Tensor) +
                                    graph.nodes().capacity() * sizeof(Node));
  for (const Tensor& tensor : graph.tensors()) {
    bytes += HeapBytes(tensor.name) + HeapBytes(tensor.type) + SharedBytes(tensor.value.get());
  }
  for (const Node& node : graph.nodes()) {
    bytes += HeapBytes(node.name) + HeapBytes(node.inputs) + HeapBytes(node.outputs) +
             HeapBytes(node.attrs);
  }
  for (const SymbolDecl& symbol : graph.symbols()) {
    bytes +=
        static_cast<int64_t>(sizeof(symbol)) + HeapBytes(symbol.name) + HeapBytes(symbol.likely);
  }
  for (const BoundStrides& bound : graph.bound_strides()) {
    bytes += static_cast<int64_t>(sizeof(bound)) + HeapBytes(bound.strides);
  }
  return bytes + HeapBytes(graph.name()) + HeapBytes(graph.inputs()) + HeapBytes(graph.outputs()) +
         HeapBytes(graph.output_extents()) + HeapBytes(graph.shared_buffers()) +
         HeapBytes(graph.shape_classes());
}

}  // namespace fusion
