#include "core/op/derive.h"

#include "core/op/forms.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

bool KindMatches(ParamSpec::Kind kind, const AttrValue& value) {
  switch (kind) {
    case ParamSpec::kInt:
      return std::holds_alternative<int64_t>(value);
    case ParamSpec::kInts:
      return std::holds_alternative<std::vector<int64_t>>(value);
    case ParamSpec::kFloat:
      return std::holds_alternative<double>(value);
    case ParamSpec::kFloats:
      return std::holds_alternative<std::vector<double>>(value);
    case ParamSpec::kString:
      return std::holds_alternative<std::string>(value);
    case ParamSpec::kTensor:
      return std::holds_alternative<std::shared_ptr<const HostTensor>>(value);
    case ParamSpec::kRepeat:
      return std::holds_alternative<std::shared_ptr<const Repeat>>(value);
  }
  return false;
}

absl::Status CheckIntegers(const ParamSpec& spec, const AttrValue& value) {
  if (spec.any_integer) return absl::OkStatus();
  const auto check = [&spec](int64_t v) -> absl::Status {
    if (v >= -kMaxParam && v <= kMaxParam) return absl::OkStatus();
    return InvalidArgument("attribute ", Quote(spec.name), " has the value ", v, ", expected ",
                           -kMaxParam, "..", kMaxParam);
  };
  if (const auto* one = std::get_if<int64_t>(&value)) return check(*one);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    for (int64_t v : *list) RETURN_IF_ERROR(check(v));
  }
  return absl::OkStatus();
}

absl::Status CheckOutputCount(const OpCall& call) {
  int most = call.def().max_outputs;
  int least = call.def().counted ? most : 1;
  if (call.def().outputs) {
    ASSIGN_OR_RETURN(least, call.def().outputs(call));
    most = least;
  }
  if (call.outputs() >= least && call.outputs() <= most) return absl::OkStatus();
  return InvalidArgument("has ", call.outputs(), " outputs, expected ", least,
                         most > least ? StrCat("..", most) : "");
}

bool IsStatic(const OpCall& call) {
  for (int i = 0; i < call.inputs(); ++i) {
    if (call.has_input(i) && !call.shape(i).is_static()) return false;
  }
  return true;
}

}  // namespace

absl::Status CheckCall(const OpCall& call) {
  const OpDef& def = call.def();
  if (call.inputs() < def.min_inputs || call.inputs() > def.max_inputs) {
    return InvalidArgument("has ", call.inputs(), " inputs, expected ", def.min_inputs,
                           def.max_inputs > def.min_inputs ? StrCat("..", def.max_inputs) : "");
  }
  // If an op takes any number of inputs, none of them is optional.
  const int required = def.max_inputs == kMaxVariadicInputs ? call.inputs() : def.min_inputs;
  for (int i = 0; i < required; ++i) {
    if (!call.has_input(i)) return InvalidArgument("input ", i, " is absent but required");
  }
  for (const auto& [name, value] : call.attrs()) {
    const ParamSpec* spec = nullptr;
    for (const ParamSpec& p : def.params) {
      if (p.name == name) spec = &p;
    }
    if (spec == nullptr) return InvalidArgument("unknown attribute ", Quote(name));
    if (!KindMatches(spec->kind, value)) {
      return InvalidArgument("attribute ", Quote(name), " has another kind than expected");
    }
    if (!def.internal) RETURN_IF_ERROR(CheckIntegers(*spec, value));
  }
  for (const ParamSpec& p : def.params) {
    if (p.required && !call.attrs().Has(p.name)) {
      return InvalidArgument("attribute ", Quote(p.name), " is missing");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorType>> InferOutputTypes(const OpCall& call, StepCount* count) {
  RETURN_IF_ERROR(CheckCall(call));
  RETURN_IF_ERROR(CheckOutputCount(call));
  const OpDef& def = call.def();
  if (def.value_of_types) {
    ASSIGN_OR_RETURN(HostTensor value, def.value_of_types(call));
    return std::vector<TensorType>{{value.dtype(), Shape(value.dims())}};
  }
  if (def.repeats) return RepeatTypes(call, count);
  if (def.symbolic_types && !IsStatic(call)) {
    if (count != nullptr) count->loop_ops += call.outputs();
    return def.symbolic_types(call);
  }
  if (def.decompose) {
    Decomposition steps(call);
    ASSIGN_OR_RETURN(Decomposition::Value out, def.decompose(steps));
    if (count != nullptr) {
      count->loop_ops += steps.count().loop_ops;
      count->constant_bytes += steps.count().constant_bytes;
    }
    std::vector<TensorType> types = {steps.type(out)};
    for (Decomposition::Value more : steps.more_outputs()) types.push_back(steps.type(more));
    return types;
  }
  if (count != nullptr) count->loop_ops += call.outputs();
  if (def.opaque) {
    ASSIGN_OR_RETURN(TensorType type, def.opaque(call));
    return std::vector<TensorType>{std::move(type)};
  }
  std::vector<TensorType> types;
  for (int i = 0; i < call.outputs(); ++i) {
    auto body = def.body(call, i);
    if (!body.ok() && absl::IsUnimplemented(body.status()) && def.reinterpret) {
      ASSIGN_OR_RETURN(TensorType type, def.reinterpret(call));
      types.push_back(type);
      continue;
    }
    RETURN_IF_ERROR(body.status());
    types.push_back(body->OutputType());
  }
  return types;
}

}  // namespace fusion
