#include "core/op/repeat.h"

#include <algorithm>

#include "core/op/derive.h"

namespace fusion {
namespace {

constexpr std::string_view kPortNames[] = {"whole", "carried", "element", "element_from_end",
                                           "pass"};
const TensorType kCountType = {DType::kI64, Shape()};
const TensorType kConditionType = {DType::kBool, Shape()};

bool IsElement(Repeat::Port port) {
  return port == Repeat::Port::kElement || port == Repeat::Port::kElementFromEnd;
}

// Type of the operand of a call for an input of the body.
TensorType OperandType(const Repeat& repeat, const Repeat::Input& input) {
  return IsElement(input.port) ? StackedType(input.type, repeat.most) : input.type;
}

absl::Status CheckOperands(const OpCall& call, const Repeat& repeat) {
  if (repeat.most < 0 || repeat.most > kMaxPasses) {
    return InvalidArgument(repeat.most, " passes, expected 0..", kMaxPasses);
  }
  std::vector<TensorType> expected;
  if (repeat.counted) expected.push_back(kCountType);
  if (repeat.conditional) expected.push_back(kConditionType);
  for (const Repeat::Input& input : repeat.inputs) {
    if (input.port == Repeat::Port::kPass) {
      if (input.type != kCountType) return InvalidArgument("a pass is ", input.type.ToString());
      continue;
    }
    expected.push_back(OperandType(repeat, input));
  }
  if (static_cast<size_t>(call.inputs()) != expected.size()) {
    return InvalidArgument("has ", call.inputs(), " inputs, its body expects ", expected.size());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto at = static_cast<int>(i);
    if (call.has_input(at) && call.in(at) == expected[i]) continue;
    return InvalidArgument("input ", i, " is ",
                           call.has_input(at) ? call.in(at).ToString() : "absent",
                           ", its body expects ", expected[i].ToString());
  }
  return absl::OkStatus();
}

// Types of all values of the body.
absl::StatusOr<std::vector<TensorType>> BodyTypes(const Repeat& repeat, StepCount* count) {
  std::vector<TensorType> types;
  for (const Repeat::Input& input : repeat.inputs) types.push_back(input.type);
  for (const Decomposition::Step& step : repeat.steps) {
    if (step.def == nullptr) {
      if (count != nullptr) count->constant_bytes += step.constant->byte_size();
      types.push_back({step.constant->dtype(), Shape(step.constant->dims())});
      continue;
    }
    std::vector<std::optional<TensorType>> inputs;
    for (Decomposition::Value v : step.inputs) {
      if (v >= static_cast<Decomposition::Value>(types.size())) {
        return InvalidArgument(step.def->name, " of the body reads what is behind it");
      }
      inputs.push_back(v < 0 ? std::nullopt : std::optional(types[static_cast<size_t>(v)]));
    }
    OpCall call(*step.def, std::move(inputs), step.attrs, step.outputs);
    absl::StatusOr<std::vector<TensorType>> outputs = InferOutputTypes(call, count);
    if (!outputs.ok()) return Annotate(outputs.status(), StrCat(step.def->name, " of the body"));
    types.insert(types.end(), outputs->begin(), outputs->end());
  }
  return types;
}

class Parser {
 public:
  explicit Parser(Lexer& in) : in_(in) {}

  absl::StatusOr<Repeat> Run() {
    RETURN_IF_ERROR(in_.Expect("repeat"));
    ASSIGN_OR_RETURN(out_.most, in_.Integer());
    out_.must_end = in_.Accept("must_end");
    out_.counted = in_.Accept("counted");
    out_.conditional = in_.Accept("conditional");
    RETURN_IF_ERROR(in_.Expect("{"));
    bool first = true;
    while (!in_.Accept("}")) {
      if (!first) RETURN_IF_ERROR(in_.Expect(","));
      first = false;
      RETURN_IF_ERROR(Item());
    }
    if (out_.outputs.size() < out_.carried() + (out_.conditional ? 1 : 0)) {
      return in_.Error("an output for all that is carried before this");
    }
    return std::move(out_);
  }

 private:
  absl::StatusOr<Decomposition::Value> Use() {
    const Lexer at = in_;
    ASSIGN_OR_RETURN(int64_t id, in_.PercentId());
    if (id < 0 || id >= values_) return at.Error("a value defined above");
    return static_cast<Decomposition::Value>(id);
  }

  absl::Status Item() {
    for (bool from_end : {false, true}) {
      if (!in_.Accept(from_end ? "out_from_end" : "out")) continue;
      ASSIGN_OR_RETURN(Decomposition::Value value, Use());
      out_.outputs.push_back({value, from_end});
      return absl::OkStatus();
    }
    for (size_t p = 0; p < std::size(kPortNames); ++p) {
      if (!in_.Accept(kPortNames[p])) continue;
      if (!out_.steps.empty()) return in_.Error("inputs before steps");
      ASSIGN_OR_RETURN(TensorType type, TensorType::Parse(in_));
      out_.inputs.push_back({static_cast<Repeat::Port>(p), std::move(type)});
      ++values_;
      return absl::OkStatus();
    }
    return Step();
  }

  absl::Status Step() {
    Decomposition::Step step{.inputs = {}, .attrs = {}, .constant = std::nullopt, .outputs = 0};
    do {
      ASSIGN_OR_RETURN(int64_t id, in_.PercentId());
      if (id != values_ + step.outputs) {
        return in_.Error(StrCat("%", values_ + step.outputs, " before this"));
      }
      ++step.outputs;
    } while (in_.Accept(","));
    RETURN_IF_ERROR(in_.Expect("="));
    if (in_.Accept("const")) {
      ASSIGN_OR_RETURN(HostTensor constant, ParseTensorText(in_));
      step.constant = std::move(constant);
      if (step.outputs != 1) return in_.Error("one constant before this");
    } else {
      const Lexer at = in_;
      ASSIGN_OR_RETURN(std::string name, in_.Identifier());
      step.def = FindOp(name);
      if (step.def == nullptr) return at.Error("the name of an op");
      RETURN_IF_ERROR(in_.Expect("("));
      while (!in_.Accept(")")) {
        if (!step.inputs.empty()) RETURN_IF_ERROR(in_.Expect(","));
        if (in_.Accept("none")) {
          step.inputs.push_back(-1);
          continue;
        }
        ASSIGN_OR_RETURN(Decomposition::Value value, Use());
        step.inputs.push_back(value);
      }
      ASSIGN_OR_RETURN(step.attrs, AttrMap::Parse(in_));
    }
    values_ += step.outputs;
    out_.steps.push_back(std::move(step));
    return absl::OkStatus();
  }

  Lexer& in_;
  Repeat out_;
  int64_t values_ = 0;
};

}  // namespace

size_t Repeat::carried() const {
  return static_cast<size_t>(std::count_if(
      inputs.begin(), inputs.end(), [](const Input& in) { return in.port == Port::kCarried; }));
}

TensorType StackedType(const TensorType& type, int64_t passes) {
  std::vector<Dim> dims = {Dim(passes)};
  dims.insert(dims.end(), type.shape.dims().begin(), type.shape.dims().end());
  return {type.dtype, Shape(std::move(dims))};
}

const Repeat* RepeatOf(const OpCall& call) {
  const auto* body = call.attrs().Find<std::shared_ptr<const Repeat>>("body");
  return body == nullptr ? nullptr : body->get();
}

absl::StatusOr<std::vector<TensorType>> RepeatTypes(const OpCall& call, StepCount* count) {
  const Repeat& repeat = *RepeatOf(call);
  RETURN_IF_ERROR(CheckOperands(call, repeat));
  ASSIGN_OR_RETURN(std::vector<TensorType> values, BodyTypes(repeat, count));
  const size_t conditions = repeat.conditional ? 1 : 0;
  if (repeat.outputs.size() < repeat.carried() + conditions) {
    return InvalidArgument("its body has ", repeat.outputs.size(), " outputs, expected at least ",
                           repeat.carried() + conditions);
  }
  std::vector<TensorType> given;
  for (const Repeat::Output& output : repeat.outputs) {
    if (output.value < 0 || static_cast<size_t>(output.value) >= values.size()) {
      return InvalidArgument("its body has no value ", output.value);
    }
    given.push_back(values[static_cast<size_t>(output.value)]);
  }
  if (conditions > 0 && given[0] != kConditionType) {
    return InvalidArgument("output 0 of its body is ", given[0].ToString(), ", expected ",
                           kConditionType.ToString());
  }
  std::vector<TensorType> out;
  for (const Repeat::Input& input : repeat.inputs) {
    if (input.port != Repeat::Port::kCarried) continue;
    const TensorType& next = given[conditions + out.size()];
    if (next != input.type) {
      return Unimplemented("its body carries ", input.type.ToString(), " on as ", next.ToString(),
                           "; only what keeps its type is supported");
    }
    out.push_back(next);
  }
  for (size_t i = conditions + out.size(); i < given.size(); ++i) {
    out.push_back(StackedType(given[i], repeat.most));
  }
  if (repeat.tells_passes()) out.push_back(kCountType);
  if (count != nullptr) count->loop_ops += static_cast<int64_t>(out.size()) + 1;
  return out;
}

std::string ToString(const Repeat& repeat) {
  std::vector<std::string> items;
  for (const Repeat::Input& input : repeat.inputs) {
    items.push_back(
        StrCat(kPortNames[static_cast<size_t>(input.port)], " ", input.type.ToString()));
  }
  auto value = static_cast<Decomposition::Value>(repeat.inputs.size());
  for (const Decomposition::Step& step : repeat.steps) {
    std::string item;
    for (int i = 0; i < step.outputs; ++i) StrAppend(&item, StrCat(i > 0 ? ", %" : "%", value++));
    if (step.def == nullptr) {
      StrAppend(&item, StrCat(" = const ", TensorToText(*step.constant)));
    } else {
      auto use = [](Decomposition::Value v) { return v < 0 ? "none" : StrCat("%", v); };
      StrAppend(&item, StrCat(" = ", step.def->name, "(", StrJoin(step.inputs, ", ", use), ")"));
      if (!step.attrs.empty()) StrAppend(&item, StrCat(" ", step.attrs.ToString()));
    }
    items.push_back(std::move(item));
  }
  for (const Repeat::Output& output : repeat.outputs) {
    items.push_back(StrCat(output.from_end ? "out_from_end %" : "out %", output.value));
  }
  return StrCat("repeat ", repeat.most, repeat.must_end ? " must_end" : "",
                repeat.counted ? " counted" : "", repeat.conditional ? " conditional" : "", " {",
                StrJoin(items, ", "), "}");
}

absl::StatusOr<Repeat> ParseRepeat(Lexer& in) {
  if (in.depth() == kMaxRepeatDepth) return in.Error("no deeper body");
  ++in.depth();
  absl::StatusOr<Repeat> repeat = Parser(in).Run();
  --in.depth();
  return repeat;
}

}  // namespace fusion
