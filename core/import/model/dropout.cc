#include "core/import/model/dropout.h"

#include "core/import/model/normalise.h"
#include "core/import/model/onnx_attributes.h"
#include "core/op/op_def.h"

namespace fusion {
namespace {

constexpr int kModeIsAttributeBefore = 7;  // attribute is_test
constexpr int kModeIsInputFrom = 12;       // inputs ratio and training_mode
constexpr int kMaskIsBoolFrom = 10;

bool IsConstant(const GraphBuilder& builder, TensorId id) {
  return builder.ConstantValue(id) != nullptr && builder.ConstantValue(id)->elements() == 1;
}

// OK if the node drops nothing.
absl::Status CheckInference(const FlatNode& node, const std::vector<TensorId>& inputs,
                            const GraphBuilder& builder) {
  if (node.opset < 1 || node.opset > kNewestOpset) {
    return Unimplemented("opset ", node.opset, " is not supported for this op; supported: 1..",
                         kNewestOpset);
  }
  if (inputs.empty() || inputs[0] == kNoTensor) {
    return InvalidArgument("input 0 is absent but required");
  }
  if (inputs.size() > 3) return InvalidArgument("has ", inputs.size(), " inputs, expected 1..3");
  if (node.opset < kModeIsAttributeBefore) {
    const onnx::AttributeProto* is_test = FindAttribute(node, "is_test");
    if (is_test != nullptr && is_test->i() != 0) return absl::OkStatus();
    return Unimplemented("is_test is 0: training mode is not supported");
  }
  bool has_mode = node.opset >= kModeIsInputFrom && inputs.size() > 2 && inputs[2] != kNoTensor;
  if (!has_mode) return absl::OkStatus();
  if (!IsConstant(builder, inputs[2])) {
    return NotConstant(2, builder.tensor(inputs[2]), "training_mode");
  }
  if (builder.ConstantValue(inputs[2])->GetInt(0) == 0) return absl::OkStatus();
  bool nothing_dropped = inputs[1] != kNoTensor && IsConstant(builder, inputs[1]) &&
                         builder.ConstantValue(inputs[1])->GetDouble(0) == 0;
  if (nothing_dropped) return absl::OkStatus();
  return Unimplemented("training mode is not supported");
}

}  // namespace

absl::StatusOr<std::vector<TensorId>> AddDropout(const FlatNode& node,
                                                 const std::vector<TensorId>& inputs,
                                                 bool mask_used,
                                                 const std::vector<std::string>& output_names,
                                                 GraphBuilder* builder) {
  absl::Status status = CheckInference(node, inputs, *builder);
  if (!status.ok()) return Annotate(status, DescribeNode(node.name, node.op));
  TensorType type = builder->tensor(inputs[0]).type;
  ASSIGN_OR_RETURN(TensorId out,
                   builder->AddNode("Identity", {inputs[0]}, {}, node.name, output_names[0]));
  if (!mask_used) return std::vector<TensorId>{out, kNoTensor};
  if (!type.shape.is_static()) {
    return Unimplemented(DescribeNode(node.name, node.op), ": the mask of a tensor of shape ",
                         type.shape.ToString(), " is asked for; bind its dims");
  }
  HostTensor one(node.opset >= kMaskIsBoolFrom ? DType::kBool : type.dtype, {1});
  one.SetDouble(0, 1);
  AttrMap attrs = {{"shape", type.shape.ToDims()},
                   {"value", std::make_shared<const HostTensor>(std::move(one))}};
  ASSIGN_OR_RETURN(TensorId mask, builder->AddNode("ConstantOfShape", {}, std::move(attrs),
                                                   node.name, output_names[1]));
  return std::vector<TensorId>{out, mask};
}

}  // namespace fusion
