#include <cmath>

#include "core/op/forms.h"
#include "core/op/forms/recurrent.h"
#include "core/op/repeat.h"

namespace fusion {

namespace {

using LinearValue = Decomposition::Value;
constexpr LinearValue kNoLinearValue = -1;
constexpr DType kLinearState = DType::kF32;

enum LinearInput { kLinearQuery, kLinearKey, kLinearValue, kPastState, kDecay, kBeta };

struct LinearSizes {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t groups = 1;  // heads of queries for each of keys and values
  int64_t heads = 0;   // of keys and values
  int64_t key = 0;
  int64_t value = 0;
  bool decays = false;
  bool corrects = false;
};

absl::Status CheckLinearOptional(const OpCall& call, int input, std::string_view name, bool wanted,
                                 const std::string& rule) {
  if (call.has_input(input) == wanted) return absl::OkStatus();
  return InvalidArgument("input ", input, " (", name, ") is ", wanted ? "absent" : "given",
                         " and attribute \"update_rule\" is ", Quote(rule));
}

absl::StatusOr<LinearSizes> LinearSizesOf(const OpCall& call) {
  LinearSizes out;
  const auto* given = call.attrs().Find<std::string>("update_rule");
  const std::string rule = given == nullptr ? "gated_delta" : *given;
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
    return InvalidArgument("attribute \"update_rule\" is ", QuoteShort(rule),
                           ", expected linear, gated, delta or gated_delta");
  }
  out.decays = rule == "gated" || rule == "gated_delta";
  out.corrects = rule == "delta" || rule == "gated_delta";
  RETURN_IF_ERROR(CheckLinearOptional(call, kDecay, "decay", out.decays, rule));
  RETURN_IF_ERROR(CheckLinearOptional(call, kBeta, "beta", out.corrects, rule));
  const int64_t queries = call.attrs().Int("q_num_heads", 0);
  out.heads = call.attrs().Int("kv_num_heads", 0);
  if (queries < 1 || out.heads < 1 || queries % out.heads != 0) {
    return InvalidArgument(R"(attributes "q_num_heads" and "kv_num_heads" are )", queries, " and ",
                           out.heads, ", expected the first to be a multiple of the second");
  }
  out.groups = queries / out.heads;
  for (int i = 0; i < call.inputs(); ++i) {
    if (!call.has_input(i)) continue;
    RETURN_IF_ERROR(CheckFloat(call, i));
    RETURN_IF_ERROR(StaticDims(call, i).status());
    const int rank = i == kPastState ? 4 : 3;
    if (call.shape(i).rank() != rank) {
      return InvalidArgument("input ", i, " is ", call.in(i).ToString(), ", expected rank ", rank);
    }
  }
  const Dims q = call.shape(kLinearQuery).ToDims();
  const Dims v = call.shape(kLinearValue).ToDims();
  out.batch = q[0];
  out.steps = q[1];
  out.key = q[2] / queries;
  out.value = v[2] / out.heads;
  auto fits = [&](int i, int64_t last) {
    return !call.has_input(i) || call.shape(i) == Shape({out.batch, out.steps, last});
  };
  const int64_t keys = out.heads * out.key;
  const bool good = q[2] == queries * out.key && fits(kLinearKey, keys) &&
                    fits(kLinearValue, out.heads * out.value) &&
                    (fits(kDecay, keys) || fits(kDecay, out.heads)) &&
                    (fits(kBeta, out.heads) || fits(kBeta, 1)) &&
                    (!call.has_input(kPastState) ||
                     call.shape(kPastState) == Shape({out.batch, out.heads, out.key, out.value}));
  if (good) return out;
  std::vector<std::string> shapes;
  shapes.reserve(static_cast<size_t>(call.inputs()));
  for (int i = 0; i < call.inputs(); ++i) {
    shapes.push_back(call.has_input(i) ? call.in(i).ToString() : "absent");
  }
  return InvalidArgument("inputs are ", StrJoin(shapes, ", "), ", expected [b,t,", queries,
                         " k], [b,t,", out.heads, " k], [b,t,", out.heads, " v], [b,", out.heads,
                         ",k,v], [b,t,", out.heads, "] or [b,t,", out.heads, " k], and [b,t,",
                         out.heads, "] or [b,t,1]");
}

// Operands of one step, or of all with one dim more before.
struct LinearStep {
  LinearValue query = 0;               // [batch, heads, groups, key]
  LinearValue key = 0;                 // [batch, heads, 1, key]
  LinearValue value = 0;               // [batch, heads, 1, value]
  LinearValue decay = kNoLinearValue;  // [batch, heads, key or 1, 1]
  LinearValue beta = kNoLinearValue;   // [batch, heads or 1, 1, 1]
};
constexpr LinearValue LinearStep::*kLinearParts[] = {&LinearStep::query, &LinearStep::key,
                                                     &LinearStep::value, &LinearStep::decay,
                                                     &LinearStep::beta};

struct LinearResult {
  LinearValue state = 0;  // [batch, heads, key, value]
  LinearValue y = 0;      // [batch, heads, groups, value]
};

absl::StatusOr<LinearResult> LinearUpdate(Decomposition& d, const LinearStep& step,
                                          LinearValue state) {
  if (step.decay != kNoLinearValue) {
    ASSIGN_OR_RETURN(state, d.Apply("Mul", {state, step.decay}));
  }
  LinearValue value = step.value;
  if (step.beta != kNoLinearValue) {
    ASSIGN_OR_RETURN(auto seen, d.Apply("MatMul", {step.key, state}));
    ASSIGN_OR_RETURN(value, d.Apply("Sub", {value, seen}));
    ASSIGN_OR_RETURN(value, d.Apply("Mul", {step.beta, value}));
  }
  ASSIGN_OR_RETURN(auto column, d.Apply("Transpose", {step.key}, {{"perm", Dims{0, 1, 3, 2}}}));
  ASSIGN_OR_RETURN(auto outer, d.Apply("Mul", {column, value}));
  LinearResult out;
  ASSIGN_OR_RETURN(out.state, d.Apply("Add", {state, outer}));
  ASSIGN_OR_RETURN(out.y, d.Apply("MatMul", {step.query, out.state}));
  return out;
}

class LinearAttention {
 public:
  LinearAttention(Decomposition& d, const LinearSizes& sizes) : d_(d), sizes_(sizes) {}

  absl::StatusOr<LinearValue> Run() {
    const OpCall& call = d_.call();
    LinearStep all;
    ASSIGN_OR_RETURN(all.query, StepsFirst(kLinearQuery, sizes_.heads, sizes_.groups));
    const double scale = call.attrs().Float("scale", 0);
    const double by = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(sizes_.key));
    ASSIGN_OR_RETURN(all.query, d_.Apply("Mul", {all.query, d_.Scalar(kLinearState, by)}));
    ASSIGN_OR_RETURN(all.key, StepsFirst(kLinearKey, sizes_.heads, 1));
    ASSIGN_OR_RETURN(all.value, StepsFirst(kLinearValue, sizes_.heads, 1));
    if (sizes_.decays) {
      ASSIGN_OR_RETURN(all.decay, StepsFirst(kDecay, sizes_.heads, 1));
      ASSIGN_OR_RETURN(all.decay, d_.Apply("Exp", {all.decay}));
      ASSIGN_OR_RETURN(all.decay,
                       d_.Apply("Transpose", {all.decay}, {{"perm", Dims{0, 1, 2, 4, 3}}}));
    }
    if (sizes_.corrects) {
      ASSIGN_OR_RETURN(all.beta, StepsFirst(kBeta, call.shape(kBeta).dim(2).value(), 1));
    }
    ASSIGN_OR_RETURN(LinearResult result, Steps(all));
    if (call.outputs() > 1) {
      const DType type = call.dtype(call.has_input(kPastState) ? kPastState : kLinearQuery);
      ASSIGN_OR_RETURN(auto state, CastTo(d_, result.state, type));
      if (state < call.inputs()) {
        ASSIGN_OR_RETURN(state, d_.Apply("Identity", {state}));
      }
      d_.SetOutput(1, state);
    }
    ASSIGN_OR_RETURN(auto y, CastTo(d_, result.y, call.dtype(kLinearQuery)));
    ASSIGN_OR_RETURN(y, d_.Apply("Transpose", {y}, {{"perm", Dims{1, 0, 2, 3, 4}}}));
    const Dims shape = {sizes_.batch, sizes_.steps, sizes_.heads * sizes_.groups * sizes_.value};
    return d_.Apply("Reshape", {y}, {{"shape", shape}, {"allowzero", int64_t{1}}});
  }

 private:
  // Input [batch, steps, heads * rows * n] as f32 [steps, batch, heads, rows, n].
  absl::StatusOr<LinearValue> StepsFirst(int input, int64_t heads, int64_t rows) {
    const int64_t last = d_.call().shape(input).dim(2).value() / (heads * rows);
    const Dims shape = {sizes_.batch, sizes_.steps, heads, rows, last};
    ASSIGN_OR_RETURN(auto x, CastTo(d_, d_.in(input), kLinearState));
    ASSIGN_OR_RETURN(x, d_.Apply("Reshape", {x}, {{"shape", shape}, {"allowzero", int64_t{1}}}));
    return d_.Apply("Transpose", {x}, {{"perm", Dims{1, 0, 2, 3, 4}}});
  }

  absl::StatusOr<LinearValue> FirstState() {
    if (d_.call().has_input(kPastState)) return CastTo(d_, d_.in(kPastState), kLinearState);
    const Dims shape = {sizes_.batch, sizes_.heads, sizes_.key, sizes_.value};
    return d_.Apply("Expand", {d_.Scalar(kLinearState, 0)}, {{"shape", shape}});
  }

  // y of all steps, [steps, ..], and the state behind the last.
  absl::StatusOr<LinearResult> Steps(const LinearStep& all) {
    ASSIGN_OR_RETURN(auto state, FirstState());
    const bool written =
        !d_.options().short_repeats && sizes_.steps > 0 && sizes_.steps <= kMostStepsWrittenOut;
    if (!written) return Repeated(all, state);
    std::vector<LinearValue> ys;
    for (int64_t i = 0; i < sizes_.steps; ++i) {
      LinearStep step;
      for (LinearValue LinearStep::*part : kLinearParts) {
        if (all.*part == kNoLinearValue) continue;
        ASSIGN_OR_RETURN(step.*part, PickAlong(d_, all.*part, 0, i));
      }
      ASSIGN_OR_RETURN(LinearResult after, LinearUpdate(d_, step, state));
      state = after.state;
      ASSIGN_OR_RETURN(auto y, d_.Apply("Unsqueeze", {after.y}, {{"axes", Dims{0}}}));
      ys.push_back(y);
    }
    LinearResult out = {.state = state, .y = ys[0]};
    if (ys.size() > 1) {
      ASSIGN_OR_RETURN(out.y, d_.Apply("Concat", std::move(ys), {{"axis", int64_t{0}}}));
    }
    return out;
  }

  absl::StatusOr<LinearResult> Repeated(const LinearStep& all, LinearValue state) {
    auto repeat = std::make_shared<Repeat>();
    repeat->most = sizes_.steps;
    std::vector<LinearValue> operands;
    std::vector<std::optional<TensorType>> types;
    auto add = [&](Repeat::Port port, LinearValue operand) {
      TensorType type = d_.type(operand);
      if (port == Repeat::Port::kElement) {
        type.shape =
            Shape(std::vector<Dim>(type.shape.dims().begin() + 1, type.shape.dims().end()));
      }
      types.emplace_back(type);
      repeat->inputs.push_back({port, std::move(type)});
      operands.push_back(operand);
      return static_cast<LinearValue>(operands.size()) - 1;
    };
    LinearStep step;
    for (LinearValue LinearStep::*part : kLinearParts) {
      if (all.*part != kNoLinearValue) step.*part = add(Repeat::Port::kElement, all.*part);
    }
    const LinearValue before = add(Repeat::Port::kCarried, state);
    OpCall call(d_.call().def(), std::move(types), d_.call().attrs());
    Decomposition body(call);
    ASSIGN_OR_RETURN(LinearResult after, LinearUpdate(body, step, before));
    repeat->steps = std::move(body).TakeSteps();
    repeat->outputs = {{after.state}, {after.y}};
    const auto results = static_cast<int>(repeat->results());
    AttrMap attrs;
    attrs.Set("body", std::shared_ptr<const Repeat>(std::move(repeat)));
    ASSIGN_OR_RETURN(std::vector<LinearValue> given,
                     d_.ApplyMulti("Repeat", std::move(operands), std::move(attrs), results));
    return LinearResult{.state = given[0], .y = given[1]};
  }

  Decomposition& d_;
  const LinearSizes& sizes_;
};

}  // namespace

/// y_t = scale * q_t S_t for each head, where the state S [key, value] of a head of keys follows
/// step by step: S_t = exp(decay_t) S_(t-1) + k_t^T v_t (`update_rule` gated; linear: no decay;
/// delta and gated_delta: beta_t (v_t - k_t S) in place of v_t). Heads of queries may share those
/// of keys and values. Output 1, if named: the last state. Computed in f32.
OpDef DefineLinearAttention() {
  return {.name = "LinearAttention",
          .min_inputs = 3,
          .max_inputs = 6,
          .params = {{.name = "chunk_size", .kind = ParamSpec::kInt},
                     {.name = "kv_num_heads", .kind = ParamSpec::kInt, .required = true},
                     {.name = "q_num_heads", .kind = ParamSpec::kInt, .required = true},
                     {.name = "scale", .kind = ParamSpec::kFloat},
                     {.name = "update_rule", .kind = ParamSpec::kString}},
          .min_opset = 27,
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(LinearSizes sizes, LinearSizesOf(d.call()));
            return LinearAttention(d, sizes).Run();
          }};
}

}  // namespace fusion
