#include "tests/support/random_rewrites.h"

#include <memory>
#include <random>

#include "core/graph/build/builder.h"
#include "core/op/derive.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

constexpr int kAbsent = -1;

HostTensor Number(DType type, double value) {
  HostTensor t(type, {});
  IsFloat(type) ? t.SetDouble(0, value) : t.SetInt(0, static_cast<int64_t>(value));
  return t;
}

/// Where nodes go: a graph, or the body of a repeat.
class Emitter {
 public:
  using Id = int;

  virtual ~Emitter() = default;
  virtual std::vector<Id> Nodes(std::string_view op, const std::vector<Id>& inputs, AttrMap attrs,
                                int outputs) = 0;
  /// Given from outside; of a body the same in every pass.
  virtual Id Given(TensorType type, bool weight) = 0;
  virtual Id Constant(HostTensor value) = 0;
  virtual const TensorType& type(Id id) const = 0;

  Id Node(std::string_view op, const std::vector<Id>& inputs, AttrMap attrs = {}) {
    return Nodes(op, inputs, std::move(attrs), 1)[0];
  }
  Id Weight(DType type, const Dims& dims) { return Given({type, Shape(dims)}, /*weight=*/true); }
  Dims dims(Id id) const { return type(id).shape.ToDims(); }
};

class GraphEmitter : public Emitter {
 public:
  explicit GraphEmitter(GraphBuilder* builder) : builder_(*builder) {}

  std::vector<Id> Nodes(std::string_view op, const std::vector<Id>& inputs, AttrMap attrs,
                        int outputs) override {
    auto made = builder_.AddMultiNode(*FindOp(op), inputs, std::move(attrs), Name("node"),
                                      std::vector<std::string>(static_cast<size_t>(outputs)));
    FUSION_CHECK(made.ok(), Message(made.status()));
    return *std::move(made);
  }
  Id Given(TensorType type, bool weight) override {
    return weight ? builder_.AddWeight(Name("w"), std::move(type))
                  : builder_.AddInput(Name("in"), std::move(type));
  }
  Id Constant(HostTensor value) override { return builder_.AddConstant("", std::move(value)); }
  const TensorType& type(Id id) const override { return builder_.tensor(id).type; }

 private:
  std::string Name(std::string_view kind) { return StrCat(kind, names_++); }

  GraphBuilder& builder_;
  int names_ = 0;
};

/// The steps of a body. Inputs are numbered as they come, values of steps behind all inputs once
/// these are known.
class BodyEmitter : public Emitter {
 public:
  /// Operands of the repeat are nodes of `outside`.
  explicit BodyEmitter(Emitter* outside) : outside_(*outside) {}

  std::vector<Id> Nodes(std::string_view op, const std::vector<Id>& inputs, AttrMap attrs,
                        int outputs) override {
    const OpDef* def = FindOp(op);
    std::vector<std::optional<TensorType>> types;
    for (Id id : inputs) types.push_back(id == kAbsent ? std::nullopt : std::optional(type(id)));
    auto made = InferOutputTypes(OpCall(*def, std::move(types), attrs, outputs));
    FUSION_CHECK(made.ok(), StrCat(op, ": ", Message(made.status())));
    repeat_->steps.push_back({def, inputs, std::move(attrs), std::nullopt, outputs});
    std::vector<Id> out;
    for (TensorType& t : *made) out.push_back(Define(std::move(t)));
    return out;
  }
  Id Given(TensorType type, bool weight) override {
    const Id operand = outside_.Given(type, weight);
    return Input(Repeat::Port::kWhole, operand, std::move(type));
  }
  Id Constant(HostTensor value) override {
    TensorType t{value.dtype(), Shape(value.dims())};
    repeat_->steps.push_back({nullptr, {}, {}, std::move(value), 1});
    return Define(std::move(t));
  }
  const TensorType& type(Id id) const override {
    return id < kSteps ? repeat_->inputs[static_cast<size_t>(id)].type
                       : types_[static_cast<size_t>(id - kSteps)];
  }

  Id Whole(Id operand) { return Input(Repeat::Port::kWhole, operand, outside_.type(operand)); }
  Id Carried(Id operand) { return Input(Repeat::Port::kCarried, operand, outside_.type(operand)); }
  Id Element(Id operand, bool from_end) {
    Dims dims = outside_.dims(operand);
    dims.erase(dims.begin());
    return Input(from_end ? Repeat::Port::kElementFromEnd : Repeat::Port::kElement, operand,
                 {outside_.type(operand).dtype, Shape(dims)});
  }
  Id Pass() {
    repeat_->inputs.push_back({Repeat::Port::kPass, {DType::kI64, Shape()}});
    return static_cast<Id>(repeat_->inputs.size()) - 1;
  }
  void Out(Id id, bool from_end = false) { repeat_->outputs.push_back({id, from_end}); }

  /// The repeat as a node of `outside`; `head`: the number of passes, whether there is a first one.
  std::vector<Id> Finish(int64_t passes, std::vector<Id> head, bool counted, bool conditional) {
    repeat_->most = passes;
    repeat_->counted = counted;
    repeat_->conditional = conditional;
    const auto inputs = static_cast<Id>(repeat_->inputs.size());
    auto number = [&](Id id) { return id < kSteps ? id : id - kSteps + inputs; };
    for (Decomposition::Step& step : repeat_->steps) {
      for (Id& in : step.inputs) in = number(in);
    }
    for (Repeat::Output& out : repeat_->outputs) out.value = number(out.value);
    head.insert(head.end(), operands_.begin(), operands_.end());
    const auto results = static_cast<int>(repeat_->results());
    AttrMap attrs;
    attrs.Set("body", std::shared_ptr<const Repeat>(std::move(repeat_)));
    return outside_.Nodes("Repeat", head, std::move(attrs), results);
  }

 private:
  static constexpr Id kSteps = 1 << 20;

  Id Input(Repeat::Port port, Id operand, TensorType type) {
    operands_.push_back(operand);
    repeat_->inputs.push_back({port, std::move(type)});
    return static_cast<Id>(repeat_->inputs.size()) - 1;
  }
  Id Define(TensorType type) {
    types_.push_back(std::move(type));
    return kSteps + static_cast<Id>(types_.size()) - 1;
  }

  Emitter& outside_;
  std::shared_ptr<Repeat> repeat_ = std::make_shared<Repeat>();
  std::vector<Id> operands_;
  std::vector<TensorType> types_;  // of what steps define
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), builder_("rewrites"), graph_(&builder_) {}

  Graph Run() {
    Id x = graph_.Given({DType::kF32, Shape(Dims{Of({2, 3, 4, 17, 19}), 1 + Below(2), Width()})},
                        /*weight=*/false);
    for (int64_t i = 1 + Below(3); i >= 0; --i) {
      switch (Below(5)) {
        case 0:
        case 1:
          x = Recurrence(graph_, x);
          break;
        case 2:
        case 3:
          x = Loop(graph_, x, /*depth=*/0);
          break;
        default:
          x = Dense(graph_, x);
      }
      if (Below(3) == 0) builder_.MarkOutput(x);
    }
    // What is behind loops is what they once broke.
    if (Below(4) != 0) x = Dense(graph_, x);
    if (Below(3) == 0) builder_.MarkOutput(Images());
    if (Below(3) == 0) builder_.MarkOutput(Narrow());
    if (Below(2) == 0) builder_.MarkOutput(OnceOrRepeated(&Generator::Blocks));
    if (Below(2) == 0) builder_.MarkOutput(OnceOrRepeated(&Generator::Loss));
    builder_.MarkOutput(graph_.Node("Neg", {x}));
    auto graph = builder_.Build();
    FUSION_CHECK(graph.ok(), Message(graph.status()));
    return *std::move(graph);
  }

 private:
  using Id = Emitter::Id;

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t Of(std::initializer_list<int64_t> values) {
    return *(values.begin() + Below(static_cast<int64_t>(values.size())));
  }
  int64_t Width() { return Of({4, 8, 16, 64, 64}); }

  static Id Scalar(Emitter& e, DType type, double value) { return e.Constant(Number(type, value)); }

  // ---- products; x is [..., k], the result [..., n] ----

  Id Dense(Emitter& e, Id x) { return e.Node("Tanh", {Product(e, x, Width())}); }

  Id Product(Emitter& e, Id x, int64_t columns) {
    const Dims weight = {e.dims(x).back(), columns};
    switch (Below(6)) {
      case 0:
        return e.Node("MatMul", {x, e.Weight(DType::kF32, weight)});
      case 1:
      case 2:
        return Dynamic(e, x, weight);
      case 3: {  // both sides quantised, scales known
        const Id scale = Scalar(e, DType::kF32, 1.0 / 64);
        const Id zero = Scalar(e, DType::kU8, 100);
        Id q = e.Node("QuantizeLinear", {x, scale, zero});
        q = e.Node("DequantizeLinear", {q, scale, zero});
        return e.Node("MatMul", {q, Quantised(e, weight)});
      }
      case 4:  // read as it is stored, where rows are few
        return e.Node("MatMul", {x, Quantised(e, weight)});
      default: {
        const Id w = e.Weight(DType::kBF16, weight);
        return e.Node("MatMul", {x, e.Node("Cast", {w}, {{"to", std::string("f32")}})});
      }
    }
  }

  // As onnxruntime's quantize_dynamic writes it.
  Id Dynamic(Emitter& e, Id x, const Dims& weight) {
    const DType type = Below(3) == 0 ? DType::kU8 : DType::kI8;
    const Id w = e.Weight(type, weight);
    const std::vector<Id> q = e.Nodes("DynamicQuantizeLinear", {x}, {}, 3);
    std::vector<Id> inputs = {q[0], w, q[2]};
    if (Below(2) == 0) inputs.push_back(Scalar(e, type, 2));
    Id y = e.Node("MatMulInteger", inputs);
    y = e.Node("Cast", {y}, {{"to", std::string("f32")}});
    return e.Node("Mul", {y, e.Node("Mul", {q[1], Scalar(e, DType::kF32, 1.0 / 16)})});
  }

  // Few rows by so many weights that they are worth reading as they are stored.
  Id Narrow() {
    const Id x = graph_.Given({DType::kF32, Shape(Dims{1 + Below(7), 64})}, /*weight=*/false);
    return graph_.Node("Tanh", {graph_.Node("MatMul", {x, Quantised(graph_, {64, 80})})});
  }

  // A weight of i8, with one scale or one for each column.
  Id Quantised(Emitter& e, const Dims& dims) {
    const Id q = e.Weight(DType::kI8, dims);
    if (Below(2) == 0) return e.Node("DequantizeLinear", {q, Scalar(e, DType::kF32, 1.0 / 16)});
    const Id scale = e.Weight(DType::kF32, {dims[1]});
    return e.Node("DequantizeLinear", {q, scale}, {{"axis", int64_t{1}}});
  }

  // ---- loops; x is [steps, batch, k], and so is the result ----

  Id Recurrence(Emitter& e, Id x) {
    struct Cell {
      std::string_view op;
      int64_t gates;
      int states;
    };
    constexpr Cell kCells[] = {
        {"LSTM", 4, 2}, {"GRU", 3, 1}, {"RNN", 1, 1}, {"com.microsoft.DynamicQuantizeLSTM", 4, 2}};
    const Cell& cell = kCells[Below(4)];
    const Dims dims = e.dims(x);
    const bool both = Below(4) == 0;
    const int64_t hidden = Of({4, 8, 32});
    const int64_t d = both ? 2 : 1;
    const int64_t columns = cell.gates * hidden;
    AttrMap attrs = {{"direction", std::string(both            ? "bidirectional"
                                               : Below(3) == 0 ? "reverse"
                                                               : "forward")}};
    std::vector<Id> inputs = {x};
    if (cell.op == kCells[3].op) {
      inputs.push_back(e.Weight(DType::kI8, {d, dims[2], columns}));
      inputs.push_back(e.Weight(DType::kI8, {d, hidden, columns}));
      inputs.insert(inputs.end(), 4, kAbsent);
      for (int weight = 0; weight < 2; ++weight) {
        HostTensor scale(DType::kF32, {d});
        for (int64_t i = 0; i < d; ++i) scale.SetDouble(i, 1.0 / 32);
        inputs.push_back(e.Constant(std::move(scale)));
        inputs.push_back(e.Weight(DType::kI8, {d}));
      }
    } else {
      inputs.push_back(e.Weight(DType::kF32, {d, columns, dims[2]}));
      inputs.push_back(e.Weight(DType::kF32, {d, columns, hidden}));
      if (Below(2) == 0) inputs.push_back(e.Weight(DType::kF32, {d, 2 * columns}));
    }
    const std::vector<Id> y =
        e.Nodes(cell.op, inputs, std::move(attrs), 1 + static_cast<int>(Below(cell.states + 1)));
    // Y, [steps, d, batch, hidden], or the last state alone.
    const bool last = y.size() > 1 && Below(2) == 0;
    const Dims shape = last ? Dims{1, dims[1], d * hidden} : Dims{dims[0], dims[1], d * hidden};
    const Id first = e.Node("Transpose", {last ? y[1] : y[0]},
                            {{"perm", last ? Dims{1, 0, 2} : Dims{0, 2, 1, 3}}});
    return e.Node("Reshape", {first}, {{"shape", shape}, {"allowzero", int64_t{1}}});
  }

  Id Loop(Emitter& e, Id x, int depth) {
    const Dims dims = e.dims(x);
    const bool counted = Below(4) == 0;
    const bool conditional = Below(4) == 0;
    std::vector<Id> head;
    if (counted) head.push_back(Scalar(e, DType::kI64, static_cast<double>(Below(dims[0] + 2))));
    if (conditional) head.push_back(Scalar(e, DType::kBool, 1));
    BodyEmitter body(&e);
    const Dims state_dims = {dims[1], Width()};
    const Id element = body.Element(x, Below(3) == 0);
    const Id state = body.Carried(e.Given({DType::kF32, Shape(state_dims)}, Below(2) == 0));
    Id sum = body.Node("Mul", {state, Scalar(body, DType::kF32, 0.5)});
    sum = body.Node("Add", {sum, Product(body, element, state_dims[1])});
    if (Below(2) == 0) sum = body.Node("Add", {sum, Product(body, state, state_dims[1])});
    if (Below(3) == 0) {
      const Id pass = body.Node("Cast", {body.Pass()}, {{"to", std::string("f32")}});
      sum = body.Node("Add", {sum, body.Node("Sin", {pass})});
    }
    Id next = body.Node("Tanh", {sum});
    if (depth == 0 && Below(3) == 0) {
      Id inner = body.Node("Unsqueeze", {next}, {{"axes", Dims{0}}});
      inner = Below(2) == 0 ? Loop(body, inner, depth + 1) : Recurrence(body, inner);
      next = body.Node("Tanh", {body.Node("Add", {next, Total(body, inner)})});
    }
    if (conditional) {
      const Id total = Total(body, next);
      body.Out(body.Node("Less", {total, Scalar(body, DType::kF32, 4)}));
    }
    body.Out(next);
    body.Out(next, Below(4) == 0);
    if (Below(2) == 0) body.Out(Dense(body, next));
    const std::vector<Id> results = body.Finish(dims[0], std::move(head), counted, conditional);
    // How many elements of a stacked result count, a run may decide: then the state alone is read.
    if (!counted && !conditional && Below(3) != 0) {
      return results[1 + static_cast<size_t>(Below(static_cast<int64_t>(results.size()) - 1))];
    }
    return e.Node("Unsqueeze", {results[0]}, {{"axes", Dims{0}}});
  }

  // The mean of all elements, as a scalar.
  static Id Total(Emitter& e, Id x) {
    return e.Node("ReduceMean", {x}, {{"keepdims", int64_t{0}}});
  }

  // ---- one pass over a dim for all that is reduced along it ----

  // `step` makes of [17, 8] as much, once or in the body of a loop.
  Id OnceOrRepeated(Id (Generator::*step)(Emitter&, Id)) {
    const Id x = graph_.Given({DType::kF32, Shape(Dims{17, 8})}, /*weight=*/false);
    if (Below(2) == 0) return (this->*step)(graph_, x);
    BodyEmitter body(&graph_);
    const Id state = body.Carried(x);
    body.Out((this->*step)(body, state));
    return body.Finish(3, {}, false, false)[0];
  }

  // A softmax over blocks of scores side by side, some with masks.
  Id Blocks(Emitter& e, Id x) {
    const Dims dims = e.dims(x);
    const auto given = [&](const Dims& d) {
      return e.Given({DType::kF32, Shape(d)}, /*weight=*/Below(2) == 0);
    };
    const bool sums = Below(2) == 0;
    std::vector<Id> scores;
    std::vector<Id> values;
    std::vector<int64_t> ends;
    for (int64_t blocks = 2 + Below(2); blocks > 0; --blocks) {
      const int64_t length = Of({1, 3, 5, 16});
      Id s = e.Node("MatMul", {x, given({dims[1], length})});
      s = e.Node("Mul", {s, Scalar(e, DType::kF32, 0.5)});
      if (Below(3) == 0) s = e.Node("Add", {s, given({dims[0], length})});
      scores.push_back(s);
      values.push_back(given({length, dims[1]}));
      ends.push_back((ends.empty() ? 0 : ends.back()) + length);
    }
    Id p = e.Node("Concat", scores, {{"axis", int64_t{1}}});
    p = e.Node("Softmax", {p}, {{"axis", int64_t{1}}});
    if (!sums) {
      const Id v = e.Node("Concat", values, {{"axis", int64_t{0}}});
      return e.Node("Tanh", {e.Node("MatMul", {p, v})});
    }
    Id y = kAbsent;
    int64_t begin = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const Id part = e.Node("Slice", {p},
                             {{"starts", Dims{begin}}, {"ends", Dims{ends[i]}}, {"axes", Dims{1}}});
      begin = ends[i];
      const Id product = e.Node("MatMul", {part, values[i]});
      y = y == kAbsent ? product : e.Node("Add", {y, product});
    }
    return e.Node("Tanh", {y});
  }

  // The log-probabilities of some classes, of logits that a product makes.
  Id Loss(Emitter& e, Id x) {
    const Dims dims = e.dims(x);
    const int64_t classes = Of({2, 9, 33});
    const auto weight = [&] { return e.Weight(DType::kF32, {dims[1], classes}); };
    Id logits = e.Node("MatMul", {x, weight()});
    if (Below(2) == 0) logits = e.Node("Add", {logits, e.Weight(DType::kF32, {classes})});
    const Id p = e.Node("LogSoftmax", {logits}, {{"axis", int64_t{1}}});
    const Id target = e.Node("ArgMax", {e.Node("MatMul", {x, weight()})}, {{"axis", int64_t{1}}});
    const Id picked = e.Node("GatherElements", {p, target}, {{"axis", int64_t{1}}});
    return e.Node("Tanh", {e.Node("Add", {x, picked})});
  }

  // ---- images [1, channels, height, width] ----

  Id Images() {
    constexpr int64_t kChannels = 16;
    Id image = graph_.Given({DType::kF32, Shape(Dims{1, kChannels, 4, 4})}, /*weight=*/false);
    image = Convolution(graph_, image);
    if (Below(2) == 0) {
      BodyEmitter body(&graph_);
      const Id state = body.Carried(image);
      body.Out(Convolution(body, Convolution(body, state)));
      image = body.Finish(2, {}, false, false)[0];
    }
    return Convolution(graph_, Convolution(graph_, image));
  }

  Id Convolution(Emitter& e, Id image) {
    const int64_t channels = e.dims(image)[1];
    const Dims dims = {channels, channels, 3, 3};
    const AttrMap same = {{"pads", Dims{1, 1, 1, 1}}};
    Id w = 0;
    if (Below(2) == 0) {
      w = e.Weight(DType::kF32, dims);
    } else {
      const Id scale = Scalar(e, DType::kF32, 1.0 / 64);
      const Id zero = Scalar(e, DType::kU8, 128);
      image = e.Node("QuantizeLinear", {image, scale, zero});
      image = e.Node("DequantizeLinear", {image, scale, zero});
      w = e.Weight(DType::kI8, dims);
      w = e.Node("DequantizeLinear", {w, Scalar(e, DType::kF32, 1.0 / 128)});
    }
    return e.Node("Tanh", {e.Node("Conv", {image, w}, same)});
  }

  std::mt19937_64 random_;
  GraphBuilder builder_;
  GraphEmitter graph_;
};

}  // namespace

Graph RandomRewriteGraph(uint64_t seed) { return Generator(seed).Run(); }

}  // namespace fusion
