#include "core/import/model/old_broadcast.h"

#include <algorithm>

#include "core/import/model/onnx_attributes.h"

namespace fusion {
namespace {

constexpr int kNewRulesFrom = 7;

bool IsBinary(std::string_view op) {
  constexpr std::string_view kOps[] = {"Add", "And", "Div", "Equal", "Greater", "Less",
                                       "Mul", "Or",  "Pow", "PRelu", "Sub",     "Xor"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

int64_t IntOf(const FlatNode& node, std::string_view name, int64_t fallback) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? fallback : attribute->i();
}

// The dim of `a` at which the first one of `b` stands.
absl::StatusOr<int64_t> AxisOf(const FlatNode& node, const Shape& a, const Shape& b) {
  const int64_t last = a.rank() - b.rank();
  if (node.op == "PRelu") return std::min<int64_t>(1, last);
  if (IntOf(node, "broadcast", 0) == 0) {
    if (a == b) return last;
    return InvalidArgument("inputs 0 ", a.ToString(), " and 1 ", b.ToString(),
                           " differ, and attribute \"broadcast\" is 0");
  }
  if (FindAttribute(node, "axis") == nullptr) return last;
  const int64_t axis = IntOf(node, "axis", last);
  if (axis >= -a.rank() && axis < 0) return axis + a.rank();
  return axis;
}

}  // namespace

absl::Status AlignOldOperand(const FlatNode& node, std::vector<TensorId>* inputs,
                             GraphBuilder* builder) {
  if (node.opset >= kNewRulesFrom || node.opset < 1 || !node.domain.empty() || !IsBinary(node.op) ||
      inputs->size() != 2 || (*inputs)[0] == kNoTensor || (*inputs)[1] == kNoTensor) {
    return absl::OkStatus();
  }
  const Shape a = builder->tensor((*inputs)[0]).type.shape;
  const Shape b = builder->tensor((*inputs)[1]).type.shape;
  auto annotated = [&](const absl::Status& status) {
    return Annotate(status, DescribeNode(node.name, node.op));
  };
  absl::StatusOr<int64_t> axis = AxisOf(node, a, b);
  if (!axis.ok()) return annotated(axis.status());
  const int64_t behind = a.rank() - b.rank() - *axis;
  if (b.rank() > a.rank() || *axis < 0 || behind < 0) {
    return annotated(InvalidArgument("input 1 ", b.ToString(), " does not fit at axis ", *axis,
                                     " of input 0 ", a.ToString()));
  }
  for (int i = 0; i < b.rank(); ++i) {
    const Dim& at = a.dim(static_cast<int>(*axis) + i);
    if (b.dim(i) == Dim(1) || b.dim(i) == at) continue;
    return annotated(InvalidArgument("input 1 ", b.ToString(), " does not broadcast to input 0 ",
                                     a.ToString(), " at axis ", *axis));
  }
  if (behind == 0) return absl::OkStatus();
  Dims axes;
  for (int64_t i = 0; i < behind; ++i) axes.push_back(b.rank() + i);
  absl::StatusOr<TensorId> aligned =
      builder->AddNode("Unsqueeze", {(*inputs)[1]}, {{"axes", axes}}, StrCat(node.name, "/b"));
  if (!aligned.ok()) return annotated(aligned.status());
  (*inputs)[1] = *aligned;
  return absl::OkStatus();
}

}  // namespace fusion
