#include "core/import/bodies/flex_attention.h"

#include <algorithm>
#include <cmath>

#include "core/import/model/onnx_attributes.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

enum FlexInput { kQuery, kKey, kValue, kFlexInputs };

class FlexAttention {
 public:
  FlexAttention(const FlatNode& node, const std::vector<TensorId>& inputs, const AddBody& add,
                GraphBuilder* builder)
      : node_(node), inputs_(inputs), add_(add), builder_(*builder) {}

  absl::StatusOr<TensorId> Run(const std::string& output) {
    RETURN_IF_ERROR(CheckInputs());
    ASSIGN_OR_RETURN(const DType precision, Precision());
    ASSIGN_OR_RETURN(const double root, RootOfScale());
    ASSIGN_OR_RETURN(TensorId q, Scaled(inputs_[kQuery], root));
    ASSIGN_OR_RETURN(TensorId k, Scaled(inputs_[kKey], root));
    ASSIGN_OR_RETURN(k, ForAllHeads(k));
    ASSIGN_OR_RETURN(k, Add("Transpose", {k}, {{"perm", Dims{0, 1, 3, 2}}}));
    ASSIGN_OR_RETURN(TensorId scores, Add("MatMul", {q, k}));
    ASSIGN_OR_RETURN(scores, Cast(scores, precision));
    ASSIGN_OR_RETURN(scores, Modified("score_mod", scores));
    ASSIGN_OR_RETURN(TensorId shares, Add("Softmax", {scores}, {{"axis", int64_t{-1}}}));
    ASSIGN_OR_RETURN(shares, Modified("prob_mod", shares));
    ASSIGN_OR_RETURN(TensorId v, Cast(inputs_[kValue], precision));
    ASSIGN_OR_RETURN(v, ForAllHeads(v));
    ASSIGN_OR_RETURN(TensorId y, Add("MatMul", {shares, v}));
    return builder_.AddNode("Cast", {y}, {{"to", std::string(DTypeName(type()))}}, node_.name,
                            output);
  }

 private:
  const TensorType& TypeOf(TensorId id) const { return builder_.tensor(id).type; }
  DType type() const { return TypeOf(inputs_[kQuery]).dtype; }

  absl::StatusOr<TensorId> Add(std::string_view op, std::vector<TensorId> inputs,
                               AttrMap attrs = {}) {
    return builder_.AddNode(op, std::move(inputs), std::move(attrs), node_.name);
  }

  absl::StatusOr<TensorId> Cast(TensorId x, DType type) {
    if (TypeOf(x).dtype == type) return x;
    return Add("Cast", {x}, {{"to", std::string(DTypeName(type))}});
  }

  absl::Status CheckInputs() const {
    const size_t own = inputs_.size() - node_.captured.size();
    for (size_t i = 0; i < kFlexInputs; ++i) {
      if (i >= own || inputs_[i] == kNoTensor) {
        return InvalidArgument("input ", i, " is absent but required");
      }
      const TensorType& given = TypeOf(inputs_[i]);
      const bool computes = IsFloat(given.dtype) && !IsNarrowFloat(given.dtype);
      if (given.shape.rank() == 4 && computes && given.dtype == type()) continue;
      return InvalidArgument("input ", i, " is ", given.ToString(),
                             ", expected [batch, heads, rows, n] of one float type");
    }
    const Shape& q = TypeOf(inputs_[kQuery]).shape;
    const Shape& k = TypeOf(inputs_[kKey]).shape;
    const Shape& v = TypeOf(inputs_[kValue]).shape;
    const bool heads_fit =
        q.dim(1) == k.dim(1) || (q.dim(1).is_static() && k.dim(1).is_static() &&
                                 k.dim(1).value() > 0 && q.dim(1).value() % k.dim(1).value() == 0);
    if (heads_fit && k.dim(0) == q.dim(0) && v.dim(0) == q.dim(0) && v.dim(1) == k.dim(1) &&
        v.dim(2) == k.dim(2) && k.dim(3) == q.dim(3)) {
      return absl::OkStatus();
    }
    return InvalidArgument("inputs are ", q.ToString(), ", ", k.ToString(), " and ", v.ToString(),
                           ", expected one batch, heads of queries that are a multiple of those of "
                           "keys and values, and keys as long as queries");
  }

  absl::StatusOr<DType> Precision() const {
    const onnx::AttributeProto* given = FindAttribute(node_, "softmax_precision");
    if (given == nullptr) return type() == DType::kF64 ? DType::kF64 : DType::kF32;
    const std::optional<DType> type = DTypeFromOnnx(given->i());
    if (type && IsFloat(*type) && !IsNarrowFloat(*type)) return *type;
    return InvalidArgument("attribute \"softmax_precision\" is ", given->i(),
                           ", expected the number of a float type");
  }

  // Queries and keys are each multiplied by it.
  absl::StatusOr<double> RootOfScale() const {
    const Dim& head = TypeOf(inputs_[kQuery]).shape.dim(3);
    double scale = 0;
    if (const onnx::AttributeProto* given = FindAttribute(node_, "scale")) {
      scale = static_cast<double>(given->f());
    } else if (head.is_static()) {
      scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(head.value(), 1)));
    } else {
      return Unimplemented("attribute \"scale\" is absent and the length of a head is ",
                           head.ToString());
    }
    if (scale >= 0) return std::sqrt(scale);
    return InvalidArgument("attribute \"scale\" is ", scale, ", expected at least 0");
  }

  absl::StatusOr<TensorId> Scaled(TensorId x, double by) {
    HostTensor factor(type(), {});
    factor.SetDouble(0, by);
    return Add("Mul", {x, builder_.AddConstant("", std::move(factor))});
  }

  // Each head of keys or values for all heads of queries that share it.
  absl::StatusOr<TensorId> ForAllHeads(TensorId x) {
    const Shape shape = TypeOf(x).shape;
    const Dim heads = TypeOf(inputs_[kQuery]).shape.dim(1);
    if (heads == shape.dim(1)) return x;
    if (!shape.is_static()) {
      return Unimplemented("heads of queries share those of ", shape.ToString(),
                           ", whose dims are symbolic; bind them");
    }
    Dims dims = shape.ToDims();
    const int64_t groups = heads.value() / dims[1];
    ASSIGN_OR_RETURN(x, Add("Unsqueeze", {x}, {{"axes", Dims{2}}}));
    ASSIGN_OR_RETURN(
        x, Add("Expand", {x}, {{"shape", Dims{dims[0], dims[1], groups, dims[2], dims[3]}}}));
    dims[1] *= groups;
    return Add("Reshape", {x}, {{"shape", dims}, {"allowzero", int64_t{1}}});
  }

  absl::StatusOr<TensorId> Modified(const std::string& name, TensorId x) {
    const onnx::AttributeProto* body = FindAttribute(node_, name);
    if (body == nullptr) return x;
    if (!body->has_g()) return InvalidArgument("attribute ", Quote(name), " is no graph");
    if (body->g().input_size() != 1 || body->g().output_size() != 1) {
      return InvalidArgument("attribute ", Quote(name), " is a graph of ", body->g().input_size(),
                             " inputs and ", body->g().output_size(),
                             " outputs, expected one of each");
    }
    ASSIGN_OR_RETURN(std::vector<TensorId> made, AddTensorBody(add_, body->g(), {x}, name));
    if (made.empty()) return InvalidArgument("attribute ", Quote(name), " gives no output");
    if (made.size() == 1 && TypeOf(made[0]) == TypeOf(x)) return made[0];
    return InvalidArgument("attribute ", Quote(name), " makes ", TypeOf(made[0]).ToString(), " of ",
                           TypeOf(x).ToString(), ", expected the same");
  }

  const FlatNode& node_;
  const std::vector<TensorId>& inputs_;
  const AddBody& add_;
  GraphBuilder& builder_;
};

}  // namespace

bool IsFlexAttention(const FlatNode& node) {
  return node.domain == "ai.onnx.preview" && node.op == "FlexAttention";
}

absl::StatusOr<TensorId> AddFlexAttention(const FlatNode& node, const std::vector<TensorId>& inputs,
                                          const AddBody& add, const std::string& output,
                                          GraphBuilder* builder) {
  absl::StatusOr<TensorId> y = FlexAttention(node, inputs, add, builder).Run(output);
  if (y.ok()) return y;
  const std::string what = DescribeNode(node.name, node.op);
  const bool named = std::string_view(Message(y.status())).starts_with(what);
  return named ? y.status() : Annotate(y.status(), what);
}

}  // namespace fusion
