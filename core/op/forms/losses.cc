#include "core/op/forms/losses.h"

#include "core/op/forms.h"

namespace fusion {
namespace {

using Value = Decomposition::Value;

constexpr Value kAbsent = -1;

enum class LossReduction { kNone, kMean, kSum };

absl::StatusOr<LossReduction> ReductionOf(const OpCall& call) {
  const auto* name = call.attrs().Find<std::string>("reduction");
  if (name == nullptr || *name == "mean") return LossReduction::kMean;
  if (*name == "sum") return LossReduction::kSum;
  if (*name == "none") return LossReduction::kNone;
  return InvalidArgument("attribute \"reduction\" is ", QuoteShort(*name),
                         ", expected none, mean or sum");
}

absl::StatusOr<Value> ZeroWhere(Decomposition& d, Value condition, Value x) {
  if (condition == kAbsent) return x;
  return d.Apply("Where", {condition, d.Scalar(d.type(x).dtype, 0), x});
}

// What each target counts in a mean: the weight of its class; kAbsent if all count 1.
absl::StatusOr<Value> WeightsOf(Decomposition& d, const LossTargets& targets) {
  const DType type = LossTypeOf(d.call());
  if (d.call().has_input(2)) {
    ASSIGN_OR_RETURN(Value classes, NamedClasses(d, targets));
    ASSIGN_OR_RETURN(Value weights, d.Apply("Gather", {d.in(2), classes}));
    ASSIGN_OR_RETURN(weights, CastTo(d, weights, type));
    return ZeroWhere(d, targets.ignored, weights);
  }
  if (targets.ignored == kAbsent) return kAbsent;
  ASSIGN_OR_RETURN(Value counted, d.Apply("Not", {targets.ignored}));
  return CastTo(d, counted, type);
}

}  // namespace

std::vector<ParamSpec> LossParams() {
  return {{.name = "reduction", .kind = ParamSpec::kString},
          {.name = "ignore_index", .kind = ParamSpec::kInt, .any_integer = true}};
}

absl::Status CheckLossInputs(const OpCall& call) {
  RETURN_IF_ERROR(ReductionOf(call).status());
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 2));
  const int rank = call.shape(0).rank();
  if (!IsFloat(call.dtype(0))) {
    return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)), ", expected a float type");
  }
  if (call.dtype(1) != DType::kI64 && call.dtype(1) != DType::kI32) {
    return InvalidArgument("input 1 is ", DTypeName(call.dtype(1)), ", expected i64 or i32");
  }
  if (call.shape(1).rank() != rank - 1) {
    return InvalidArgument("input 1 ", call.in(1).ToString(), " has rank ", call.shape(1).rank(),
                           ", expected ", rank - 1, ": the dims of input 0 ", call.in(0).ToString(),
                           " without dim 1");
  }
  for (int d = 0; d < rank - 1; ++d) {
    RETURN_IF_ERROR(call.CheckSameExtent(0, d == 0 ? 0 : d + 1, 1, d));
  }
  if (!call.has_input(2)) return absl::OkStatus();
  RETURN_IF_ERROR(call.CheckSameType(0, 2));
  if (call.shape(2) == Shape({call.shape(0).dim(1)})) return absl::OkStatus();
  return InvalidArgument("input 2 is ", call.in(2).ToString(), ", expected one weight for each of ",
                         call.shape(0).dim(1).ToString(), " classes");
}

DType LossTypeOf(const OpCall& call) {
  return call.dtype(0) == DType::kF64 ? DType::kF64 : DType::kF32;
}

absl::StatusOr<LossTargets> LossTargetsOf(Decomposition& d) {
  LossTargets out;
  ASSIGN_OR_RETURN(out.meant, CastTo(d, d.in(1), DType::kI64));
  if (const auto* index = d.call().attrs().Find<int64_t>("ignore_index")) {
    HostTensor constant(DType::kI64, {});
    constant.SetInt(0, *index);
    ASSIGN_OR_RETURN(out.ignored, d.Apply("Equal", {out.meant, d.Constant(std::move(constant))}));
  }
  return out;
}

absl::StatusOr<Value> NamedClasses(Decomposition& d, const LossTargets& targets) {
  return ZeroWhere(d, targets.ignored, targets.meant);
}

absl::StatusOr<Value> ReducedLoss(Decomposition& d, Value losses, const LossTargets& targets) {
  ASSIGN_OR_RETURN(LossReduction reduction, ReductionOf(d.call()));
  const bool weighted = d.call().has_input(2);
  Value weights = kAbsent;
  if (weighted || reduction == LossReduction::kMean) {
    ASSIGN_OR_RETURN(weights, WeightsOf(d, targets));
  }
  ASSIGN_OR_RETURN(Value y, ZeroWhere(d, targets.ignored, losses));
  if (weighted) {
    ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, weights}));
  }
  const AttrMap all = {{"keepdims", int64_t{0}}};
  if (reduction == LossReduction::kMean && weights == kAbsent) {
    ASSIGN_OR_RETURN(y, d.Apply("ReduceMean", {y}, all));
  } else if (reduction != LossReduction::kNone) {
    ASSIGN_OR_RETURN(y, d.Apply("ReduceSum", {y}, all));
  }
  if (reduction == LossReduction::kMean && weights != kAbsent) {
    ASSIGN_OR_RETURN(Value whole, d.Apply("ReduceSum", {weights}, all));
    ASSIGN_OR_RETURN(y, d.Apply("Div", {y, whole}));
  }
  return CastTo(d, y, d.call().dtype(0));
}

}  // namespace fusion
