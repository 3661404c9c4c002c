#include "tests/support/transformer_graph.h"

#include "core/graph/build/builder.h"

namespace fusion {
namespace {

class Writer {
 public:
  Writer(int64_t sequence, int64_t width, int64_t heads)
      : sequence_(sequence), width_(width), heads_(heads) {}

  Graph Run(int layers) {
    TensorId x = builder_.AddInput("x", Float({1, sequence_, width_}));
    TensorId mask = builder_.AddInput("mask", Float({1, 1, 1, sequence_}));
    for (int i = 0; i < layers; ++i) {
      x = Node("Add", {x, Attention(Normalised(x), mask)});
      x = Node("Add", {x, FeedForward(Normalised(x))});
    }
    builder_.MarkOutput(x);
    auto graph = builder_.Build();
    FUSION_CHECK(graph.ok(), Message(graph.status()));
    return *std::move(graph);
  }

 private:
  static TensorType Float(const Dims& dims) { return {DType::kF32, Shape(dims)}; }
  TensorId Weight(const Dims& dims) {
    return builder_.AddWeight(StrCat("w", weights_++), Float(dims));
  }
  TensorId Constant(float value) {
    return builder_.AddConstant("", HostTensor::FromValues<float>(DType::kF32, {}, {value}));
  }
  TensorId Node(std::string_view op, std::vector<TensorId> inputs, AttrMap attrs = {}) {
    auto made = builder_.AddNode(op, std::move(inputs), std::move(attrs));
    FUSION_CHECK(made.ok(), Message(made.status()));
    return *made;
  }
  TensorId Linear(TensorId x, int64_t in, int64_t out) {
    return Node("Add", {Node("MatMul", {x, Weight({in, out})}), Weight({out})});
  }

  TensorId Normalised(TensorId x) {
    AttrMap last = {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{1}}};
    TensorId centred = Node("Sub", {x, Node("ReduceMean", {x}, last)});
    TensorId square = Node("Pow", {centred, Constant(2)});
    TensorId variance = Node("ReduceMean", {square}, last);
    TensorId deviation = Node("Sqrt", {Node("Add", {variance, Constant(1e-5F)})});
    TensorId scaled = Node("Mul", {Node("Div", {centred, deviation}), Weight({width_})});
    return Node("Add", {scaled, Weight({width_})});
  }

  TensorId Heads(TensorId x, std::vector<int64_t> perm) {
    AttrMap shape = {{"shape", std::vector<int64_t>{1, sequence_, heads_, width_ / heads_}}};
    return Node("Transpose", {Node("Reshape", {x}, shape)}, {{"perm", std::move(perm)}});
  }

  TensorId Attention(TensorId x, TensorId mask) {
    TensorId q = Heads(Linear(x, width_, width_), {0, 2, 1, 3});
    TensorId k = Heads(Linear(x, width_, width_), {0, 2, 3, 1});
    TensorId v = Heads(Linear(x, width_, width_), {0, 2, 1, 3});
    TensorId scores = Node("Div", {Node("MatMul", {q, k}), Constant(8)});
    TensorId weights = Node("Softmax", {Node("Add", {scores, mask})}, {{"axis", int64_t{-1}}});
    TensorId rows = Node("Transpose", {Node("MatMul", {weights, v})},
                         {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    AttrMap shape = {{"shape", std::vector<int64_t>{1, sequence_, width_}}};
    return Linear(Node("Reshape", {rows}, shape), width_, width_);
  }

  TensorId FeedForward(TensorId x) {
    TensorId up = Linear(x, width_, 4 * width_);
    TensorId erf = Node("Erf", {Node("Div", {up, Constant(1.41421356F)})});
    TensorId gelu =
        Node("Mul", {Node("Mul", {up, Node("Add", {erf, Constant(1)})}), Constant(0.5F)});
    return Linear(gelu, 4 * width_, width_);
  }

  GraphBuilder builder_{"transformer"};
  int64_t sequence_;
  int64_t width_;
  int64_t heads_;
  int weights_ = 0;
};

}  // namespace

Graph TransformerGraph(int layers, int64_t sequence, int64_t width, int64_t heads) {
  return Writer(sequence, width, heads).Run(layers);
}

}  // namespace fusion
