#include "core/op/forms/recurrent.h"

#include <algorithm>

#include "core/base/contains.h"
#include "core/op/forms.h"
#include "core/op/forms/quantised.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

using Value = Decomposition::Value;
using Activation = RecurrentStep::Activation;

std::vector<std::string> Words(const std::string& list) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// The activations of ONNX, and the defaults of the parameters that they take from activation_alpha
// and activation_beta.
struct ActivationRow {
  std::string_view name;
  bool takes_alpha;
  double alpha;
  bool takes_beta;
  double beta;
};
constexpr ActivationRow kActivations[] = {
    {"Affine", true, 1, true, 0},           {"Elu", true, 1, false, 0},
    {"HardSigmoid", true, 0.2, true, 0.5},  {"LeakyRelu", true, 0.01, false, 0},
    {"Relu", false, 0, false, 0},           {"ScaledTanh", true, 1, true, 1},
    {"Sigmoid", false, 0, false, 0},        {"Softplus", false, 0, false, 0},
    {"Softsign", false, 0, false, 0},       {"Tanh", false, 0, false, 0},
    {"ThresholdedRelu", true, 1, false, 0},
};

Activation MakeActivation(const ActivationRow& row, double alpha, double beta) {
  auto scalar = [](Decomposition& d, Value x, double value) {
    return d.Scalar(d.type(x).dtype, value);
  };
  if (row.name == "Affine") {
    return [scalar, alpha, beta](Decomposition& d, Value x) -> absl::StatusOr<Value> {
      ASSIGN_OR_RETURN(Value y, d.Apply("Mul", {x, scalar(d, x, alpha)}));
      return d.Apply("Add", {y, scalar(d, x, beta)});
    };
  }
  if (row.name == "ScaledTanh") {
    return [scalar, alpha, beta](Decomposition& d, Value x) -> absl::StatusOr<Value> {
      ASSIGN_OR_RETURN(Value y, d.Apply("Mul", {x, scalar(d, x, beta)}));
      ASSIGN_OR_RETURN(y, d.Apply("Tanh", {y}));
      return d.Apply("Mul", {y, scalar(d, x, alpha)});
    };
  }
  AttrMap attrs;
  if (row.takes_alpha) attrs.Set("alpha", alpha);
  if (row.takes_beta) attrs.Set("beta", beta);
  return [attrs, name = row.name](Decomposition& d, Value x) { return d.Apply(name, {x}, attrs); };
}

// The activations of all directions, in order. Each takes its parameters from the front of the
// lists.
absl::StatusOr<std::vector<Activation>> Activations(const AttrMap& attrs, const RecurrentCell& cell,
                                                    size_t directions) {
  std::vector<std::string> names;
  for (size_t i = 0; i < directions; ++i) {
    names.insert(names.end(), cell.default_activations.begin(), cell.default_activations.end());
  }
  if (const auto* list = attrs.Find<std::string>("activations")) {
    std::vector<std::string> given = Words(*list);
    if (given.size() != names.size()) {
      return InvalidArgument("attribute \"activations\" has ", given.size(), " entries, expected ",
                             names.size());
    }
    names = std::move(given);
  }
  auto floats = [&](std::string_view name) {
    const auto* list = attrs.Find<std::vector<double>>(name);
    return list != nullptr ? *list : std::vector<double>();
  };
  std::vector<double> alphas = floats("activation_alpha");
  std::vector<double> betas = floats("activation_beta");
  size_t next_alpha = 0;
  size_t next_beta = 0;
  std::vector<Activation> out;
  for (const std::string& name : names) {
    const auto* row = std::find_if(std::begin(kActivations), std::end(kActivations),
                                   [&](const ActivationRow& r) { return r.name == name; });
    if (row == std::end(kActivations)) {
      return InvalidArgument(
          "attribute \"activations\" names ", QuoteShort(name), ", expected one of ",
          StrJoin(kActivations, ", ", [](const ActivationRow& r) { return r.name; }));
    }
    double alpha = row->alpha;
    double beta = row->beta;
    if (row->takes_alpha && next_alpha < alphas.size()) alpha = alphas[next_alpha++];
    if (row->takes_beta && next_beta < betas.size()) beta = betas[next_beta++];
    out.push_back(MakeActivation(*row, alpha, beta));
  }
  return out;
}

// The extents of one op, checked.
struct Sizes {
  Dim steps;
  int64_t hidden = 0;
  int64_t directions = 1;
  Dim batch;
  Dim input;
  bool batch_first = false;
};

absl::Status CheckShape(const OpCall& call, int input, std::string_view name,
                        const std::vector<Dim>& expected) {
  if (!call.has_input(input)) return absl::OkStatus();
  RETURN_IF_ERROR(call.CheckSameType(0, input));
  if (call.shape(input).dims() == expected) return absl::OkStatus();
  return InvalidArgument("input ", name, " is ", call.in(input).ToString(), ", expected ",
                         Shape(expected).ToString());
}

// Operands that hold the scale of weight W (1) or R (2) and, behind it, the zero point.
int ScaleInput(int weight) { return 5 + 2 * weight; }

// Weight `input`, [directions, k, columns], its scale and its zero point, which may be absent.
absl::Status CheckQuantisedWeight(const OpCall& call, int input, std::string_view name,
                                  const std::vector<Dim>& expected) {
  RETURN_IF_ERROR(CheckQuantised(call, input));
  if (call.shape(input).dims() != expected) {
    return InvalidArgument("input ", name, " is ", call.in(input).ToString(), ", expected ",
                           Shape(expected).ToString());
  }
  const int scale = ScaleInput(input);
  for (int i = scale; i < scale + 2; ++i) {
    const std::string_view what = i == scale ? "_scale" : "_zero_point";
    if (i > scale && !call.has_input(i)) continue;
    const DType type = i == scale ? call.dtype(0) : call.dtype(input);
    const bool fits = call.has_input(i) && call.dtype(i) == type &&
                      (call.shape(i) == Shape({expected[0]}) ||
                       call.shape(i) == Shape({expected[0], expected[2]}));
    if (fits) continue;
    return InvalidArgument("input ", name, what, " is ",
                           call.has_input(i) ? call.in(i).ToString() : "absent", ", expected ",
                           DTypeName(type), Shape({expected[0]}).ToString(), " or ",
                           DTypeName(type), Shape({expected[0], expected[2]}).ToString());
  }
  return absl::OkStatus();
}

// Operand of lengths that are known only at run time: the last one.
int LengthsInput(const OpCall& call) { return call.def().max_inputs - 1; }

// A batch or a length that is open yet is checked once it is bound.
absl::Status CheckSequenceLengths(const OpCall& call, const Sizes& sizes) {
  const int operand = LengthsInput(call);
  if (call.has_input(operand)) {
    if (!IsInteger(call.dtype(operand)) || call.shape(operand) != Shape({sizes.batch})) {
      return InvalidArgument("input sequence_lens is ", call.in(operand).ToString(),
                             ", expected i32[", sizes.batch.ToString(), "]");
    }
    return absl::OkStatus();
  }
  if (!call.attrs().Has("sequence_lens")) return absl::OkStatus();
  std::vector<int64_t> lengths = call.attrs().Ints("sequence_lens");
  auto count = static_cast<int64_t>(lengths.size());
  if (sizes.batch.is_static() && Dim(count) != sizes.batch) {
    return InvalidArgument("sequence_lens has ", lengths.size(), " entries, expected one for each",
                           " of the batch of ", sizes.batch.ToString());
  }
  for (int64_t length : lengths) {
    if (sizes.steps.is_static() && (length < 0 || length > sizes.steps.value())) {
      return InvalidArgument("sequence_lens has the entry ", length, ", expected 0..",
                             sizes.steps.value());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Sizes> SizesOf(const OpCall& call, const RecurrentCell& cell) {
  Sizes out;
  for (int i = 0; i < 3; ++i) {
    if (call.shape(i).rank() != 3) {
      return InvalidArgument("input ", i, " ", call.in(i).ToString(), ", expected rank 3");
    }
  }
  if (!IsFloat(call.dtype(0))) {
    return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)), ", expected a float type");
  }
  const auto* direction = call.attrs().Find<std::string>("direction");
  if (direction != nullptr && *direction == "bidirectional") {
    out.directions = 2;
  } else if (direction != nullptr && *direction != "forward" && *direction != "reverse") {
    return InvalidArgument("attribute \"direction\" is ", QuoteShort(*direction),
                           ", expected forward, reverse or bidirectional");
  }
  out.batch_first = call.attrs().Int("layout", 0) != 0;
  out.steps = call.shape(0).dim(out.batch_first ? 1 : 0);
  out.batch = call.shape(0).dim(out.batch_first ? 0 : 1);
  out.input = call.shape(0).dim(2);
  const Dim& hidden = call.shape(2).dim(cell.quantised_weights ? 1 : 2);
  if (!hidden.is_static()) {
    return Unimplemented("the hidden size ", hidden.ToString(), " is symbolic; bind its dims");
  }
  out.hidden = hidden.value();
  if (out.steps.is_static() && out.steps.value() > kMaxPasses) {
    return Unimplemented("a sequence of ", out.steps.value(), " steps; supported: 0..", kMaxPasses);
  }
  if (call.attrs().Int("hidden_size", out.hidden) != out.hidden) {
    return InvalidArgument("attribute \"hidden_size\" is ", call.attrs().Int("hidden_size", 0),
                           ", input R is ", call.in(2).ToString());
  }
  Dim d = out.directions;
  Dim rows = hidden * cell.gates;
  std::vector<Dim> state = {d, out.batch, hidden};
  if (out.batch_first) state = {out.batch, d, hidden};
  if (cell.quantised_weights) {
    RETURN_IF_ERROR(CheckQuantisedWeight(call, 1, "W", {d, out.input, rows}));
    RETURN_IF_ERROR(CheckQuantisedWeight(call, 2, "R", {d, hidden, rows}));
  } else {
    RETURN_IF_ERROR(CheckShape(call, 1, "W", {d, rows, out.input}));
    RETURN_IF_ERROR(CheckShape(call, 2, "R", {d, rows, hidden}));
  }
  RETURN_IF_ERROR(CheckShape(call, 3, "B", {d, rows * 2}));
  RETURN_IF_ERROR(CheckShape(call, 4, "initial_h", state));
  if (cell.has_cell_state) {
    RETURN_IF_ERROR(CheckShape(call, 5, "initial_c", state));
    RETURN_IF_ERROR(CheckShape(call, 6, "P", {d, hidden * 3}));
  }
  RETURN_IF_ERROR(CheckSequenceLengths(call, out));
  return out;
}

/// One use of one of the ops.
class Recurrence {
 public:
  Recurrence(Decomposition& d, const RecurrentCell& cell, Sizes sizes,
             std::vector<Activation> activations)
      : d_(d), cell_(cell), sizes_(std::move(sizes)), activations_(std::move(activations)) {}

  absl::StatusOr<Value> Run() {
    ASSIGN_OR_RETURN(Value x, StepsFirst(d_.in(0), {1, 0, 2}));
    ASSIGN_OR_RETURN(active_, Active());
    if (cell_.quantised_weights && active_ != kAll) {
      ASSIGN_OR_RETURN(x, WhereAnyIsActive(x));
    }
    // [steps * batch, input]: one product for all steps.
    const int64_t rows = steps() * sizes_.batch.value();
    ASSIGN_OR_RETURN(
        x, d_.Apply("Reshape", {x},
                    {{"shape", Dims{rows, sizes_.input.value()}}, {"allowzero", int64_t{1}}}));
    std::vector<Value> y;
    std::vector<Value> last_hidden;
    std::vector<Value> last_cell;
    const auto* direction = d_.call().attrs().Find<std::string>("direction");
    for (int64_t i = 0; i < sizes_.directions; ++i) {
      bool backwards = i == 1 || (direction != nullptr && *direction == "reverse");
      Value all = 0;
      ASSIGN_OR_RETURN(RecurrentState last, RunDirection(i, backwards, x, &all));
      y.push_back(all);
      ASSIGN_OR_RETURN(Value h, d_.Apply("Unsqueeze", {last.hidden}, {{"axes", Dims{0}}}));
      last_hidden.push_back(h);
      if (!cell_.has_cell_state) continue;
      ASSIGN_OR_RETURN(Value c, d_.Apply("Unsqueeze", {last.cell}, {{"axes", Dims{0}}}));
      last_cell.push_back(c);
    }
    RETURN_IF_ERROR(SetState(1, last_hidden));
    RETURN_IF_ERROR(SetState(2, last_cell));
    ASSIGN_OR_RETURN(Value out, Joined(y, 1));
    return sizes_.batch_first ? d_.Apply("Transpose", {out}, {{"perm", Dims{2, 0, 1, 3}}}) : out;
  }

 private:
  int64_t steps() const { return sizes_.steps.value(); }

  absl::StatusOr<Value> StepsFirst(Value x, Dims perm) {
    if (!sizes_.batch_first) return x;
    return d_.Apply("Transpose", {x}, {{"perm", std::move(perm)}});
  }

  absl::StatusOr<Value> Joined(std::vector<Value> parts, int64_t axis) {
    if (parts.size() == 1) return parts[0];
    return d_.Apply("Concat", std::move(parts), {{"axis", axis}});
  }

  absl::StatusOr<Value> Stack(const std::vector<Value>& parts, const Dims& new_axes, int64_t axis) {
    std::vector<Value> raised;
    for (Value part : parts) {
      ASSIGN_OR_RETURN(Value v, d_.Apply("Unsqueeze", {part}, {{"axes", new_axes}}));
      raised.push_back(v);
    }
    return Joined(std::move(raised), axis);
  }

  absl::Status SetState(int output, std::vector<Value> parts) {
    if (d_.call().outputs() <= output) return absl::OkStatus();
    ASSIGN_OR_RETURN(Value state, Joined(std::move(parts), 0));
    ASSIGN_OR_RETURN(state, StepsFirst(state, {1, 0, 2}));
    d_.SetOutput(output, state);
    return absl::OkStatus();
  }

  absl::StatusOr<Value> InitialState(int input, int64_t direction) {
    if (!d_.call().has_input(input)) return RecurrentState::kZero;
    return PickAlong(d_, d_.in(input), sizes_.batch_first ? 1 : 0, direction);
  }

  // Whether a step is inside of the sequence: [steps, batch, 1]; kAll if every one is.
  absl::StatusOr<Value> Active() {
    const OpCall& call = d_.call();
    const int operand = LengthsInput(call);
    Value lengths = 0;
    if (call.has_input(operand)) {
      ASSIGN_OR_RETURN(lengths, CastTo(d_, d_.in(operand), DType::kI64));
    } else {
      const std::vector<int64_t> known = call.attrs().Ints("sequence_lens");
      if (std::all_of(known.begin(), known.end(), [&](int64_t n) { return n == steps(); })) {
        return kAll;
      }
      HostTensor constant(DType::kI64, {static_cast<int64_t>(known.size())});
      for (size_t i = 0; i < known.size(); ++i) {
        constant.SetInt(static_cast<int64_t>(i), known[i]);
      }
      lengths = d_.Constant(std::move(constant));
    }
    ASSIGN_OR_RETURN(lengths, d_.Apply("Unsqueeze", {lengths}, {{"axes", Dims{0, 2}}}));
    ASSIGN_OR_RETURN(Value step, CountTo(d_, steps()));
    ASSIGN_OR_RETURN(step, d_.Apply("Unsqueeze", {step}, {{"axes", Dims{1, 2}}}));
    return d_.Apply("Less", {step, lengths});
  }

  // x [steps, batch, input] with zeros in the steps behind the longest sequence: they do not count
  // for what x is quantised to.
  absl::StatusOr<Value> WhereAnyIsActive(Value x) {
    ASSIGN_OR_RETURN(Value any, CastTo(d_, active_, DType::kU8));
    ASSIGN_OR_RETURN(any, d_.Apply("ReduceMax", {any}, {{"axes", Dims{1}}}));
    ASSIGN_OR_RETURN(any, CastTo(d_, any, DType::kBool));
    return d_.Apply("Where", {any, x, d_.Scalar(d_.type(x).dtype, 0)});
  }

  // One step; after the end of a sequence its state does not change. `active`: [batch, 1], or kAll.
  absl::StatusOr<RecurrentState> Step(Decomposition& d, const RecurrentStep& step, Value active) {
    ASSIGN_OR_RETURN(RecurrentState after, cell_.step(d, step));
    if (active == kAll) return after;
    auto keep = [&](Value from, Value to) -> absl::StatusOr<Value> {
      if (from == RecurrentState::kZero) from = d.Scalar(d.type(to).dtype, 0);
      return d.Apply("Where", {active, to, from});
    };
    ASSIGN_OR_RETURN(after.hidden, keep(step.before.hidden, after.hidden));
    if (cell_.has_cell_state) {
      ASSIGN_OR_RETURN(after.cell, keep(step.before.cell, after.cell));
    }
    return after;
  }

  // The hidden states of all steps, zero after the ends of sequences: [steps, 1, batch, hidden].
  absl::StatusOr<Value> Shown(Value all) {
    if (active_ == kAll) return all;
    ASSIGN_OR_RETURN(Value active, d_.Apply("Unsqueeze", {active_}, {{"axes", Dims{1}}}));
    return d_.Apply("Where", {active, all, d_.Scalar(d_.type(all).dtype, 0)});
  }

  // Input `input`, W or R, of a direction.
  absl::StatusOr<RecurrentWeight> WeightOf(int input, int64_t direction) {
    RecurrentWeight out;
    ASSIGN_OR_RETURN(out.value, PickAlong(d_, d_.in(input), 0, direction));
    if (!cell_.quantised_weights) {
      ASSIGN_OR_RETURN(out.value, d_.Apply("Transpose", {out.value}, {{"perm", Dims{1, 0}}}));
      return out;
    }
    const int scale = ScaleInput(input);
    ASSIGN_OR_RETURN(out.scale, PickAlong(d_, d_.in(scale), 0, direction));
    if (d_.call().has_input(scale + 1)) {
      ASSIGN_OR_RETURN(out.zero, PickAlong(d_, d_.in(scale + 1), 0, direction));
    }
    return out;
  }

  // The operands that are the same in all steps of one direction; `projected` gets [steps, batch,
  // columns].
  absl::StatusOr<RecurrentStep> Prepare(int64_t direction, Value x, Value* projected) {
    RecurrentStep step{.hidden_size = sizes_.hidden, .clip = d_.call().attrs().Float("clip", 0)};
    ASSIGN_OR_RETURN(const RecurrentWeight w, WeightOf(1, direction));
    ASSIGN_OR_RETURN(*projected, Weighted(d_, x, w));
    ASSIGN_OR_RETURN(step.recurrent_weight, WeightOf(2, direction));
    if (d_.call().has_input(3)) {
      ASSIGN_OR_RETURN(Value both, PickAlong(d_, d_.in(3), 0, direction));
      int64_t half = cell_.gates;
      ASSIGN_OR_RETURN(Value bias, GateColumns(d_, both, sizes_.hidden, 0, half));
      ASSIGN_OR_RETURN(Value recurrent, GateColumns(d_, both, sizes_.hidden, half, half));
      if (cell_.merge_recurrent_bias) {
        ASSIGN_OR_RETURN(bias, d_.Apply("Add", {bias, recurrent}));
      } else {
        step.recurrent_bias = recurrent;
      }
      ASSIGN_OR_RETURN(*projected, d_.Apply("Add", {*projected, bias}));
    }
    int64_t columns = cell_.gates * sizes_.hidden;
    ASSIGN_OR_RETURN(*projected, d_.Apply("Reshape", {*projected},
                                          {{"shape", Dims{steps(), sizes_.batch.value(), columns}},
                                           {"allowzero", int64_t{1}}}));
    if (cell_.has_cell_state && d_.call().has_input(6)) {
      ASSIGN_OR_RETURN(step.peephole, PickAlong(d_, d_.in(6), 0, direction));
    }
    size_t each = cell_.default_activations.size();
    for (size_t i = 0; i < each; ++i) {
      step.activation.push_back(activations_[static_cast<size_t>(direction) * each + i]);
    }
    return step;
  }

  // `all` gets the hidden state of every step, in the order of the sequence: [steps, 1, batch,
  // hidden].
  absl::StatusOr<RecurrentState> RunDirection(int64_t direction, bool backwards, Value x,
                                              Value* all) {
    Value projected = 0;
    ASSIGN_OR_RETURN(RecurrentStep step, Prepare(direction, x, &projected));
    ASSIGN_OR_RETURN(step.before.hidden, InitialState(4, direction));
    if (cell_.has_cell_state) {
      ASSIGN_OR_RETURN(step.before.cell, InitialState(5, direction));
    }
    // If the state is quantised, its last bit affects the next step. Steps are then not unrolled,
    // so that fusion cannot change the rounding of the state between two steps.
    const bool apart = cell_.quantised_weights && steps() > 1;
    if (apart || d_.options().short_repeats || steps() > kMostStepsWrittenOut || steps() == 0) {
      return Repeated(backwards, step, projected, all);
    }
    std::vector<Value> hidden;
    for (int64_t i = 0; i < steps(); ++i) {
      const int64_t at = backwards ? steps() - 1 - i : i;
      ASSIGN_OR_RETURN(step.projected, PickAlong(d_, projected, 0, at));
      Value active = kAll;
      if (active_ != kAll) {
        ASSIGN_OR_RETURN(active, PickAlong(d_, active_, 0, at));
      }
      ASSIGN_OR_RETURN(step.before, Step(d_, step, active));
      hidden.push_back(step.before.hidden);
    }
    if (backwards) std::reverse(hidden.begin(), hidden.end());
    ASSIGN_OR_RETURN(*all, Stack(hidden, {0, 1}, 0));
    ASSIGN_OR_RETURN(*all, Shown(*all));
    return step.before;
  }

  // The steps as passes of one body.
  absl::StatusOr<RecurrentState> Repeated(bool backwards, const RecurrentStep& step,
                                          Value projected, Value* all) {
    using Port = Repeat::Port;
    auto repeat = std::make_shared<Repeat>();
    repeat->most = steps();
    std::vector<Value> operands;
    // Their numbers in the body.
    auto add = [&](Port port, Value operand) {
      TensorType type = d_.type(operand);
      if (port == Port::kElement || port == Port::kElementFromEnd) {
        type.shape =
            Shape(std::vector<Dim>(type.shape.dims().begin() + 1, type.shape.dims().end()));
      }
      repeat->inputs.push_back({port, std::move(type)});
      operands.push_back(operand);
      return static_cast<Value>(operands.size()) - 1;
    };
    RecurrentStep inner = step;
    const Port moving = backwards ? Port::kElementFromEnd : Port::kElement;
    inner.projected = add(moving, projected);
    const Value active = active_ == kAll ? kAll : add(moving, active_);
    ASSIGN_OR_RETURN(Value hidden, Stated(step.before.hidden, projected));
    inner.before.hidden = add(Port::kCarried, hidden);
    if (cell_.has_cell_state) {
      ASSIGN_OR_RETURN(Value cell, Stated(step.before.cell, projected));
      inner.before.cell = add(Port::kCarried, cell);
    }
    inner.recurrent_weight.value = add(Port::kWhole, step.recurrent_weight.value);
    for (Value RecurrentWeight::*optional : {&RecurrentWeight::zero, &RecurrentWeight::scale}) {
      if (step.recurrent_weight.*optional != RecurrentWeight::kAbsent) {
        inner.recurrent_weight.*optional = add(Port::kWhole, step.recurrent_weight.*optional);
      }
    }
    for (Value RecurrentStep::*optional :
         {&RecurrentStep::recurrent_bias, &RecurrentStep::peephole}) {
      if (step.*optional != RecurrentStep::kAbsent) {
        inner.*optional = add(Port::kWhole, step.*optional);
      }
    }
    std::vector<std::optional<TensorType>> types;
    for (const Repeat::Input& input : repeat->inputs) types.emplace_back(input.type);
    OpCall call(d_.call().def(), std::move(types), d_.call().attrs());
    Decomposition body(call);
    ASSIGN_OR_RETURN(RecurrentState after, Step(body, inner, active));
    repeat->steps = std::move(body).TakeSteps();
    repeat->outputs.push_back({after.hidden});
    if (cell_.has_cell_state) repeat->outputs.push_back({after.cell});
    repeat->outputs.push_back({after.hidden, backwards});
    const auto results = static_cast<int>(repeat->results());
    AttrMap attrs;
    attrs.Set("body", std::shared_ptr<const Repeat>(std::move(repeat)));
    ASSIGN_OR_RETURN(std::vector<Value> given,
                     d_.ApplyMulti("Repeat", std::move(operands), std::move(attrs), results));
    ASSIGN_OR_RETURN(*all, d_.Apply("Unsqueeze", {given.back()}, {{"axes", Dims{1}}}));
    ASSIGN_OR_RETURN(*all, Shown(*all));
    return RecurrentState{.hidden = given[0],
                          .cell = cell_.has_cell_state ? given[1] : RecurrentState::kZero};
  }

  // A state as a tensor of the type of `like`.
  absl::StatusOr<Value> Stated(Value state, Value like) {
    if (state != RecurrentState::kZero) return state;
    return d_.Apply("Expand", {d_.Scalar(d_.type(like).dtype, 0)},
                    {{"shape", Dims{sizes_.batch.value(), sizes_.hidden}}});
  }

  // Of a mask: there is none, every element counts.
  static constexpr Value kAll = -1;

  Decomposition& d_;
  const RecurrentCell& cell_;
  Sizes sizes_;
  std::vector<Activation> activations_;
  Value active_ = kAll;  // what Active() says
};

}  // namespace

std::vector<ParamSpec> RecurrentParams() {
  return {{.name = "activation_alpha", .kind = ParamSpec::kFloats},
          {.name = "activation_beta", .kind = ParamSpec::kFloats},
          {.name = "activations", .kind = ParamSpec::kString},
          {.name = "clip", .kind = ParamSpec::kFloat},
          {.name = "direction", .kind = ParamSpec::kString},
          {.name = "hidden_size", .kind = ParamSpec::kInt},
          {.name = "layout", .kind = ParamSpec::kInt},
          {.name = "sequence_lens",
           .kind = ParamSpec::kInts,
           .onnx_input = 4,
           .unknown_is_operand = true}};
}

absl::StatusOr<Value> Weighted(Decomposition& d, Value x, const RecurrentWeight& weight) {
  if (weight.scale == RecurrentWeight::kAbsent) return d.Apply("MatMul", {x, weight.value});
  ASSIGN_OR_RETURN(const std::vector<Value> q, d.ApplyMulti("DynamicQuantizeLinear", {x}, {}, 3));
  ASSIGN_OR_RETURN(Value a, WithoutZeroPoint(d, q[0], q[2]));
  ASSIGN_OR_RETURN(Value b, WithoutZeroPoint(d, weight.value, weight.zero));
  ASSIGN_OR_RETURN(Value y, d.Apply("MatMul", {a, b}));
  ASSIGN_OR_RETURN(Value scale, d.Apply("Mul", {q[1], weight.scale}));
  ASSIGN_OR_RETURN(y, CastTo(d, y, DType::kF32));
  return d.Apply("Mul", {y, scale});
}

absl::StatusOr<Value> GateColumns(Decomposition& d, Value value, int64_t hidden_size, int64_t first,
                                  int64_t count) {
  return SliceAlong(d, value, d.type(value).shape.rank() - 1, first * hidden_size,
                    (first + count) * hidden_size);
}

absl::StatusOr<Value> Activate(Decomposition& d, const RecurrentStep& step, size_t activation,
                               Value value) {
  if (step.clip > 0) {
    ASSIGN_OR_RETURN(value, d.Apply("Clip", {value}, {{"low", -step.clip}, {"high", step.clip}}));
  }
  return step.activation[activation](d, value);
}

absl::StatusOr<Value> DecomposeRecurrence(Decomposition& d, const RecurrentCell& cell) {
  ASSIGN_OR_RETURN(Sizes sizes, SizesOf(d.call(), cell));
  for (const Dim* dim : {&sizes.steps, &sizes.batch, &sizes.input}) {
    if (!dim->is_static()) return Unimplemented("dim ", dim->ToString(), " is symbolic");
  }
  ASSIGN_OR_RETURN(std::vector<Activation> activations,
                   Activations(d.call().attrs(), cell, static_cast<size_t>(sizes.directions)));
  return Recurrence(d, cell, std::move(sizes), std::move(activations)).Run();
}

absl::StatusOr<std::vector<TensorType>> RecurrenceTypes(const OpCall& call,
                                                        const RecurrentCell& cell) {
  ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(call, cell));
  RETURN_IF_ERROR(Activations(call.attrs(), cell, static_cast<size_t>(sizes.directions)).status());
  const Dim directions = sizes.directions;
  const Dim hidden = sizes.hidden;
  std::vector<Dim> all = {sizes.steps, directions, sizes.batch, hidden};
  std::vector<Dim> last = {directions, sizes.batch, hidden};
  if (sizes.batch_first) {
    all = {sizes.batch, sizes.steps, directions, hidden};
    last = {sizes.batch, directions, hidden};
  }
  std::vector<TensorType> types = {{call.dtype(0), Shape(std::move(all))}};
  types.resize(static_cast<size_t>(call.outputs()), {call.dtype(0), Shape(std::move(last))});
  return types;
}

}  // namespace fusion
