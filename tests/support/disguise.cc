#include "tests/support/disguise.h"

#include <algorithm>
#include <numbers>

#include "core/base/check.h"
#include "core/base/text/text.h"
#include "core/graph/build/builder.h"

namespace fusion {
namespace {

class Rewriter {
 public:
  Rewriter(const Graph& graph, Disguise disguise)
      : graph_(graph),
        disguise_(disguise),
        out_("disguised", {.fold_limit_bytes = 0}),
        of_(graph.tensors().size()) {}

  Graph Run(int64_t extent) {
    for (size_t t = 0; t < graph_.tensors().size(); ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      std::string name = disguise_ == Disguise::kCommuted ? StrCat("renamed_", t) : tensor.name;
      if (tensor.kind == TensorKind::kInput) of_[t] = out_.AddInput(name, tensor.type);
      if (tensor.kind == TensorKind::kWeight) of_[t] = out_.AddWeight(name, tensor.type);
      if (tensor.kind == TensorKind::kConstant) of_[t] = out_.AddConstant(name, *tensor.value);
    }
    for (const Node& node : graph_.nodes()) {
      std::vector<TensorId> inputs;
      for (TensorId t : node.inputs) {
        inputs.push_back(t == kNoTensor ? kNoTensor : of_[static_cast<size_t>(t)]);
      }
      FUSION_CHECK(node.outputs.size() == 1, "nodes of one output only");
      of_[static_cast<size_t>(node.outputs[0])] = Rewritten(node, inputs);
    }
    for (TensorId t : graph_.outputs()) out_.MarkOutput(of_[static_cast<size_t>(t)]);
    if (disguise_ == Disguise::kExtraReduction) AddReduction(extent);
    absl::StatusOr<Graph> built = out_.Build();
    FUSION_CHECK(built.ok(), Message(built.status()));
    return *std::move(built);
  }

 private:
  using Inputs = std::vector<TensorId>;

  TensorId Add(std::string_view op, Inputs inputs, AttrMap attrs = {}) {
    absl::StatusOr<TensorId> added = out_.AddNode(op, std::move(inputs), std::move(attrs));
    FUSION_CHECK(added.ok(), Message(added.status()));
    return *added;
  }

  TensorId Scalar(double value, TensorId like) {
    HostTensor scalar(out_.tensor(like).type.dtype, {});
    scalar.SetDouble(0, value);
    return out_.AddConstant("", std::move(scalar));
  }

  int64_t Rank(TensorId t) const { return out_.tensor(t).type.shape.rank(); }

  TensorId Rewritten(const Node& node, const Inputs& in) {
    std::string_view op = node.def->name;
    switch (disguise_) {
      case Disguise::kCommuted:
        if (op == "Add" || op == "Mul" || op == "Max" || op == "Min") {
          return Add(op, {in.rbegin(), in.rend()}, node.attrs);
        }
        break;
      case Disguise::kSplit:
        if (op == "Softmax" || op == "LogSoftmax") return SoftmaxBySteps(node, in[0]);
        if (op == "Div") return Quotient(in[0], in[1]);
        if (op == "Sub") return Difference(in[0], in[1]);
        if (op == "Relu") return Add("Max", {Scalar(0, in[0]), in[0]});
        if (op == "Neg") return Difference(Scalar(0, in[0]), in[0]);
        break;
      case Disguise::kOtherBase:
        if (op == "Softmax" || op == "LogSoftmax") return SoftmaxBySteps(node, in[0]);
        if (op == "Exp") return Exponential(in[0]);
        if (op == "Log") return Logarithm(in[0]);
        break;
      case Disguise::kSwappedAxes:
        return Swapped(node, in);
      case Disguise::kExtraReduction:
        break;
      case Disguise::kOtherScale:
        if (op == "Softmax") return SoftmaxBySteps(node, in[0]);
        if (op == "Div") return Quotient(in[0], in[1]);
        break;
    }
    return Add(op, in, node.attrs);
  }

  TensorId Exponential(TensorId x) {
    if (disguise_ != Disguise::kOtherBase) return Add("Exp", {x});
    return Add("Pow", {Scalar(2, x), Add("Mul", {x, Scalar(std::numbers::log2e, x)})});
  }

  // There is no logarithm of base 2 in ONNX: by that of e, twice scaled.
  TensorId Logarithm(TensorId x) {
    if (disguise_ != Disguise::kOtherBase) return Add("Log", {x});
    TensorId base2 = Add("Mul", {Add("Log", {x}), Scalar(std::numbers::log2e, x)});
    return Add("Mul", {base2, Scalar(std::numbers::ln2, x)});
  }

  TensorId Difference(TensorId a, TensorId b) {
    if (disguise_ != Disguise::kSplit) return Add("Sub", {a, b});
    return Add("Add", {a, Add("Neg", {b})});
  }

  TensorId Quotient(TensorId a, TensorId b) {
    if (disguise_ == Disguise::kOtherScale) b = Add("Mul", {b, Add("Sqrt", {b})});
    if (disguise_ != Disguise::kSplit) return Add("Div", {a, b});
    return Add("Mul", {a, Add("Reciprocal", {b})});
  }

  TensorId SoftmaxBySteps(const Node& node, TensorId x) {
    AttrMap along{{"axes", std::vector<int64_t>{node.attrs.Int("axis", -1)}},
                  {"keepdims", int64_t{1}}};
    TensorId shifted = Difference(x, Add("ReduceMax", {x}, along));
    TensorId powers = Exponential(shifted);
    TensorId sum = Add("ReduceSum", {powers}, along);
    if (node.def->name == "LogSoftmax") return Difference(shifted, Logarithm(sum));
    return Quotient(powers, sum);
  }

  TensorId Transposed(TensorId x) {
    std::vector<int64_t> perm;
    for (int64_t i = 0; i < Rank(x); ++i) perm.push_back(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return Add("Transpose", {x}, {{"perm", perm}});
  }

  TensorId Swapped(const Node& node, const Inputs& in) {
    std::string_view op = node.def->name;
    bool wide = !in.empty() && Rank(in[0]) >= 2;
    if (op == "MatMul" && wide && Rank(in[1]) >= 2) {
      return Transposed(Add("MatMul", {Transposed(in[1]), Transposed(in[0])}));
    }
    bool last =
        wide && (node.attrs.Int("axis", 0) == -1 || node.attrs.Int("axis", 0) == Rank(in[0]) - 1);
    if ((op == "Softmax" || op == "LogSoftmax") && last) {
      AttrMap attrs = node.attrs;
      attrs.Set("axis", Rank(in[0]) - 2);
      return Transposed(Add(op, {Transposed(in[0])}, attrs));
    }
    if (op.starts_with("Reduce") && wide && node.attrs.Int("keepdims", 1) == 1 &&
        node.attrs.Ints("axes") == std::vector<int64_t>{Rank(in[0]) - 1}) {
      AttrMap attrs = node.attrs;
      attrs.Set("axes", std::vector<int64_t>{Rank(in[0]) - 2});
      return Transposed(Add(op, {Transposed(in[0])}, attrs));
    }
    return Add(op, in, node.attrs);
  }

  // Of the first value that is computed, or of an input.
  void AddReduction(int64_t extent) {
    for (bool computed : {true, false}) {
      for (size_t t = 0; t < graph_.tensors().size(); ++t) {
        const Tensor& tensor = graph_.tensors()[t];
        bool fits = (tensor.kind == TensorKind::kIntermediate) == computed &&
                    tensor.kind != TensorKind::kConstant && IsFloat(tensor.type.dtype);
        std::vector<int64_t> extents = tensor.type.shape.ToDims();
        auto axis = std::find(extents.begin(), extents.end(), extent);
        if (!fits || axis == extents.end()) continue;
        AttrMap along{{"axes", std::vector<int64_t>{axis - extents.begin()}},
                      {"keepdims", int64_t{0}}};
        out_.MarkOutput(Add("ReduceSumSquare", {of_[t]}, along));
        return;
      }
    }
    FUSION_CHECK(false, "no value with that extent");
  }

  const Graph& graph_;
  Disguise disguise_;
  GraphBuilder out_;
  std::vector<TensorId> of_;  // by tensor of graph_
};

}  // namespace

std::string_view Name(Disguise disguise) {
  constexpr std::string_view kNames[] = {"commuted",     "split",           "other_base",
                                         "swapped_axes", "extra_reduction", "other_scale"};
  return kNames[static_cast<size_t>(disguise)];
}

std::string_view RefusalOf(const StreamCase& c, Disguise disguise) {
  const char* other = disguise == Disguise::kExtraReduction ? c.extra_reduction
                      : disguise == Disguise::kOtherScale   ? c.other_scale
                                                            : nullptr;
  return other == nullptr ? c.refusal : other;
}

Graph Disguised(const Graph& graph, Disguise disguise, int64_t extent) {
  return Rewriter(graph, disguise).Run(extent);
}

}  // namespace fusion
