#include "core/op/op_def.h"

#include <algorithm>

#include "core/base/threads/job.h"
#include "core/op/body/tensor_size.h"
#include "core/op/derive.h"

namespace fusion {

// op_list.inc is written by core/CMakeLists.txt from the files of op/defs: FUSION_OP(Add)
// FUSION_OP(Softmax) ...
#define FUSION_OP(name) OpDef Define##name();
#include "op_list.inc"
#undef FUSION_OP

int OpCall::NumberOf(int i) const {
  std::vector<int> taken;
  for (const ParamSpec& param : def_->params) {
    if (param.onnx_input >= 0) taken.push_back(param.onnx_input);
  }
  std::sort(taken.begin(), taken.end());
  for (int input : taken) i += input <= i ? 1 : 0;
  return i;
}

absl::StatusOr<int> OpCall::NormaliseAxis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis ", axis, " out of range for rank ", rank, "; expected ", -rank,
                           "..", rank - 1);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<std::vector<int>> OpCall::NormaliseAxes(const std::vector<int64_t>& axes,
                                                       int rank) const {
  std::vector<int> out;
  for (int64_t axis : axes) {
    ASSIGN_OR_RETURN(int a, NormaliseAxis(axis, rank));
    out.push_back(a);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) {
    return InvalidArgument("axes [", StrJoin(axes, ","), "] name one axis twice");
  }
  return out;
}

absl::Status OpCall::CheckSameExtent(int a, int i, int b, int j) const {
  if (shape(a).dim(i) == shape(b).dim(j)) return absl::OkStatus();
  return InvalidArgument("dim ", i, " of input ", NumberOf(a), " ", in(a).ToString(), " is ",
                         shape(a).dim(i).ToString(), " but dim ", j, " of input ", NumberOf(b), " ",
                         in(b).ToString(), " is ", shape(b).dim(j).ToString());
}

absl::Status OpCall::CheckSameType(int a, int b) const {
  if (dtype(a) == dtype(b)) return absl::OkStatus();
  return InvalidArgument("input ", NumberOf(a), " is ", DTypeName(dtype(a)), " but input ",
                         NumberOf(b), " is ", DTypeName(dtype(b)),
                         "; expected equal element types");
}

absl::Status OpCall::CheckRankAtLeast(int input, int rank) const {
  if (shape(input).rank() >= rank) return absl::OkStatus();
  return InvalidArgument("input ", NumberOf(input), " ", in(input).ToString(), " has rank ",
                         shape(input).rank(), ", expected at least ", rank);
}

Decomposition::Decomposition(const OpCall& call, const Options& options)
    : call_(&call), options_(options), more_outputs_(static_cast<size_t>(call.outputs() - 1), -1) {
  for (int i = 0; i < call.inputs(); ++i) {
    types_.push_back(call.has_input(i) ? std::optional(call.in(i)) : std::nullopt);
  }
}

Decomposition::Value Decomposition::Scalar(DType type, double value) {
  HostTensor constant(type, {});
  constant.SetDouble(0, value);
  return Constant(std::move(constant));
}

Decomposition::Value Decomposition::Constant(HostTensor constant) {
  types_.push_back(TensorType{constant.dtype(), Shape(constant.dims())});
  count_.constant_bytes += constant.byte_size();
  steps_.push_back(Step{.inputs = {}, .attrs = {}, .constant = std::move(constant)});
  return static_cast<Value>(types_.size()) - 1;
}

absl::StatusOr<Decomposition::Value> Decomposition::Apply(std::string_view op,
                                                          std::vector<Value> inputs,
                                                          AttrMap attrs) {
  ASSIGN_OR_RETURN(std::vector<Value> outputs,
                   ApplyMulti(op, std::move(inputs), std::move(attrs), 1));
  return outputs[0];
}

absl::StatusOr<std::vector<Decomposition::Value>> Decomposition::ApplyMulti(
    std::string_view op, std::vector<Value> inputs, AttrMap attrs, int outputs) {
  Job::Step();
  const OpDef* def = FindOp(op);
  FUSION_CHECK(def != nullptr, StrCat("a decomposition names a known op, not ", op));
  std::vector<std::optional<TensorType>> types;
  for (Value v : inputs) types.push_back(types_[static_cast<size_t>(v)]);
  OpCall step_call(*def, std::move(types), attrs, outputs);
  ASSIGN_OR_RETURN(std::vector<TensorType> inferred, InferOutputTypes(step_call, &count_));
  std::vector<Value> made;
  for (TensorType& type : inferred) {
    RETURN_IF_ERROR(CheckStepSize(op, type));
    made.push_back(static_cast<Value>(types_.size()));
    types_.emplace_back(std::move(type));
  }
  steps_.push_back(Step{.def = def,
                        .inputs = std::move(inputs),
                        .attrs = std::move(attrs),
                        .constant = std::nullopt,
                        .outputs = outputs});
  return made;
}

const std::vector<const OpDef*>& AllOps() {
  static const auto* const kOps = [] {
    auto* ops = new std::vector<const OpDef*>;  // lives for ever
#define FUSION_OP(name) ops->push_back(new OpDef(Define##name()));
#include "op_list.inc"
#undef FUSION_OP
    std::sort(ops->begin(), ops->end(),
              [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
    return ops;
  }();
  return *kOps;
}

const OpDef* FindOp(std::string_view name) {
  const auto& ops = AllOps();
  auto it = std::lower_bound(ops.begin(), ops.end(), name,
                             [](const OpDef* def, std::string_view n) { return def->name < n; });
  return it != ops.end() && (*it)->name == name ? *it : nullptr;
}

const OpDef* FindModelOp(std::string_view name) {
  const OpDef* def = FindOp(name);
  return def != nullptr && def->internal ? nullptr : def;
}

std::string ListModelOps() {
  std::vector<std::string_view> names;
  for (const OpDef* def : AllOps()) {
    if (!def->internal) names.push_back(def->name);
  }
  return StrJoin(names, ", ", [](std::string_view name) { return name; });
}

}  // namespace fusion
