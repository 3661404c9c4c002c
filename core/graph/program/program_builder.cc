#include "core/graph/program/program_builder.h"

#include <algorithm>
#include <utility>

#include "core/base/contains.h"
#include "core/base/threads/job.h"
#include "core/graph/program/compose.h"
#include "core/graph/program/coordinates.h"
#include "core/graph/program/half_precision.h"
#include "core/op/body/simplify.h"
#include "core/op/body/tensor_size.h"
#include "core/op/derive.h"

namespace fusion {
namespace {

// Of all tensors of a program together: what a plan can say (bundle/plan.h).
constexpr int64_t kMaxProgramBytes = kMaxTensorBytes << 7;

// A view that shows its input as it is, dim by dim.
bool IsIdentityView(const LoopBody& body) {
  if (!body.IsView()) return false;
  const IndexMap& read = body.reads[0].index;
  if (read.size() != body.write.size()) return false;
  return read == body.write;
}

// A view of elements of which neighbours along some dim lie apart in its input: dims that it could
// be read along as one are several.
bool LeavesGaps(const LoopBody& view) {
  return std::any_of(view.reads[0].index.begin(), view.reads[0].index.end(),
                     [&](const IndexExpr& e) {
                       return e.terms().size() == 1 && e.terms()[0].coefficient > 1 &&
                              view.axes[static_cast<size_t>(e.terms()[0].axis)].extent != Dim(1);
                     });
}

// If `body` reads its input with the output's axes merely in another order: that order (storage
// order of the input that makes the output row-major). Empty otherwise.
std::vector<int> PermutationOf(const LoopBody& body) {
  std::vector<int> dim_of_axis(body.axes.size(), -1);
  const IndexMap& read = body.reads[0].index;
  if (read.size() != body.write.size()) return {};
  for (size_t d = 0; d < read.size(); ++d) {
    if (!read[d].IsPlainAxis()) return {};
    dim_of_axis[static_cast<size_t>(read[d].terms()[0].axis)] = static_cast<int>(d);
  }
  std::vector<int> order;
  for (const IndexExpr& e : body.write) {
    if (!e.IsPlainAxis()) return {};
    order.push_back(dim_of_axis[static_cast<size_t>(e.terms()[0].axis)]);
  }
  return order;
}

// An expression that costs more is computed once and read.
constexpr double kMostFormCost = 16;

bool HasWithin(const Expr& e) {
  bool found = false;
  e.VisitOnce([&](const Expr& n) { found |= n.op() == ScalarOp::kWithin; });
  return found;
}

Expr ScalarOf(const HostTensor& tensor) {
  return IsFloat(tensor.dtype()) ? Expr::Const(tensor.dtype(), tensor.GetDouble(0))
                                 : Expr::ConstInt(tensor.dtype(), tensor.GetInt(0));
}

template <typename Predicate>
bool AnyIndex(const LoopBody& body, Predicate predicate) {
  return std::any_of(body.reads.begin(), body.reads.end(), [&](const Read& read) {
    return std::any_of(read.index.begin(), read.index.end(), predicate);
  });
}

bool IsIndex(const LoopBody& body, int input) {
  return AnyIndex(body, [input](const IndexExpr& e) { return e.indirect() == input; });
}

// Where one of the dims that a body reduces has no elements, it does not walk the others either.
void WalkNothingInVain(LoopBody* body) {
  const std::vector<int> reduced = body->ReducedAxes();
  auto extent = [body](int axis) -> Dim& { return body->axes[static_cast<size_t>(axis)].extent; };
  if (std::none_of(reduced.begin(), reduced.end(), [&](int a) { return extent(a) == Dim(0); })) {
    return;
  }
  for (int axis : reduced) extent(axis) = Dim(0);
}

}  // namespace

bool IsScalarConstant(const Value& value) {
  return value.kind == TensorKind::kConstant && value.value->elements() == 1;
}

bool ReadsAtInputs(const LoopBody& body) {
  return AnyIndex(body, [](const IndexExpr& e) { return e.indirect() >= 0; });
}

// Functions of the coordinates that are worth more than a read.
Expr ProgramBuilder::FormOf(ValueId id) {
  if (!options_.absorb_views) return {};
  auto [at, fresh] = forms_.try_emplace(id);
  if (!fresh) return at->second;
  const Value& value = program_.value(id);
  if (value.kind == TensorKind::kConstant) {
    at->second = CoordinateForm(*value.value);
    return at->second;
  }
  if (value.producer == kNoLoop || program_.op(value.producer).kind != LoopOp::kLoop) return {};
  const LoopOp& op = program_.op(value.producer);
  bool plain = op.inputs.empty() && !op.body.reduce.has_value() &&
               std::all_of(op.body.write.begin(), op.body.write.end(),
                           [](const IndexExpr& e) { return e.IsPlainAxis() || e == IndexExpr(0); });
  if (!plain || op.body.value.Cost() > kMostFormCost) return {};
  // Over the coordinates of the output in place of the axes.
  IndexMap dim_of_axis(op.body.axes.size(), IndexExpr(0));
  for (size_t d = 0; d < op.body.write.size(); ++d) {
    if (!op.body.write[d].IsPlainAxis()) continue;
    dim_of_axis[static_cast<size_t>(op.body.write[d].terms()[0].axis)] =
        IndexExpr::Axis(static_cast<int>(d));
  }
  at->second = HasWithin(op.body.value) ? Expr() : AtIndex(op.body.value, dim_of_axis);
  return at->second;
}

// Puts scalar constants and functions of the coordinates into the expression and reads each (value,
// index) once.
void ProgramBuilder::NormaliseInputs(LoopBody* body, std::vector<ValueId>* inputs) {
  const Program& program = program_;
  const bool indirect = ReadsAtInputs(*body);
  std::vector<Expr> replacement(inputs->size());
  LoopBody out = *body;
  out.reads.clear();
  std::vector<ValueId> kept;
  for (size_t i = 0; i < inputs->size(); ++i) {
    const Value& value = program.value((*inputs)[i]);
    // Input numbers inside indirect indices are not renumbered: such bodies keep their inputs.
    if (!indirect && IsScalarConstant(value)) {
      replacement[i] = ScalarOf(*value.value);
      continue;
    }
    bool plain = !indirect && body->reads[i].guards.empty();
    Expr form = plain ? FormOf((*inputs)[i]) : Expr();
    if (!form.empty()) {
      replacement[i] = AtIndex(form, body->reads[i].index);
      continue;
    }
    size_t same = kept.size();
    for (size_t k = 0; k < kept.size() && !indirect; ++k) {
      if (kept[k] == (*inputs)[i] && out.reads[k] == body->reads[i]) same = k;
    }
    if (same == kept.size()) {
      kept.push_back((*inputs)[i]);
      out.reads.push_back(body->reads[i]);
    }
    replacement[i] = Expr::Input(static_cast<int>(same), value.type.dtype);
  }
  out.value = Simplify(body->value.MapLeaves([&](const Expr& leaf) {
    return leaf.op() == ScalarOp::kInput ? replacement[static_cast<size_t>(leaf.index())] : leaf;
  }));
  *body = std::move(out);
  *inputs = std::move(kept);
}

ValueId ProgramBuilder::AddValue(Value value) {
  Job::Step();
  if (too_large_.ok()) too_large_ = CheckTensorSize(value.type);
  if (too_large_.ok() && value.type.shape.is_static()) {
    value_bytes_ +=
        static_cast<double>(NumElements(value.type.shape.ToDims()) * DTypeBytes(value.type.dtype));
  }
  program_.values.push_back(std::move(value));
  direct_uses_.emplace_back();
  return static_cast<ValueId>(program_.values.size()) - 1;
}

ValueId ProgramBuilder::AddInput(TensorType type, TensorId tensor) {
  const ValueId id = AddValue({.type = std::move(type),
                               .kind = TensorKind::kInput,
                               .index = static_cast<int>(program_.inputs.size()),
                               .value = {},
                               .order = {},
                               .tensor = tensor});
  program_.inputs.push_back(id);
  return id;
}

ValueId ProgramBuilder::AddWeight(TensorType type, TensorId tensor) {
  const ValueId id = AddValue({.type = std::move(type),
                               .kind = TensorKind::kWeight,
                               .index = static_cast<int>(program_.weights.size()),
                               .value = {},
                               .order = {},
                               .tensor = tensor});
  program_.weights.push_back(id);
  return id;
}

void ProgramBuilder::NoteDirectUse(ValueId value, const LoopBody& body, size_t input) {
  DirectUse& use = direct_uses_[static_cast<size_t>(value)];
  std::vector<int> permutation;
  if (body.IsView() && input == 0) permutation = PermutationOf(body);
  if (permutation.empty() || (use.any && use.permutation != permutation)) use.mixed = true;
  use.any = true;
  use.permutation = std::move(permutation);
}

// The value of a new op on values in memory.
ValueId ProgramBuilder::AddComputed(std::string label, LoopBody body, std::vector<ValueId> inputs,
                                    NodeId origin) {
  NormaliseInputs(&body, &inputs);
  return AddNormalised(std::move(label), std::move(body), std::move(inputs), origin);
}

ValueId ProgramBuilder::AddNormalised(std::string label, LoopBody body, std::vector<ValueId> inputs,
                                      NodeId origin) {
  if (!options_.open_dims) WalkNothingInVain(&body);
  Value out{.type = body.OutputType(),
            .kind = TensorKind::kIntermediate,
            .value = {},
            .producer = static_cast<LoopId>(program_.ops.size()),
            .order = {}};
  ValueId id = AddValue(std::move(out));
  program_.ops.push_back({.kind = LoopOp::kLoop,
                          .label = std::move(label),
                          .origin = origin,
                          .step = step_,
                          .body = std::move(body),
                          .inputs = std::move(inputs),
                          .output = id});
  return id;
}

ValueId ProgramBuilder::Materialise(const Handle& handle) {
  if (!handle.view) return handle.base;
  ++count_.loop_ops;
  const int outer = std::exchange(step_, handle.step);
  const ValueId copy = AddComputed("Copy", *handle.view, {handle.base}, handle.origin);
  program_.values[static_cast<size_t>(copy)].shape_class = handle.shape_class;
  step_ = outer;
  return copy;
}

// Indices that are known need not be read.
void ProgramBuilder::InlineIndices(LoopBody* body, std::vector<Handle>* inputs) const {
  for (size_t i = inputs->size(); i-- > 0;) {
    const Handle& handle = (*inputs)[i];
    if (handle.view || program_.value(handle.base).kind != TensorKind::kConstant) continue;
    if (!IsIndex(*body, static_cast<int>(i))) continue;
    std::vector<TensorType> types;
    for (const Handle& h : *inputs) {
      types.push_back(h.view ? h.view->OutputType() : program_.value(h.base).type);
    }
    const HostTensor& indices = *program_.value(handle.base).value;
    auto inlined = ReadAtConstant(*body, static_cast<int>(i), indices, types);
    if (!inlined) continue;
    *body = *std::move(inlined);
    inputs->erase(inputs->begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// `half`, cast to f32 as a whole, once for all its readers.
ProgramBuilder::Handle ProgramBuilder::InSingle(const Handle& half, NodeId origin) {
  auto [at, fresh] = singles_.try_emplace(half.base, half.base);
  if (fresh) {
    const TensorType type = program_.value(half.base).type;
    LoopBody cast = CastBody(type.shape, type.dtype, DType::kF32);
    NoteDirectUse(half.base, cast, 0);
    at->second = AddComputed("Cast", std::move(cast), {half.base}, origin);
    ++count_.loop_ops;
  }
  Handle wide = half;
  wide.base = at->second;
  if (wide.view) wide.view->value = Expr::Input(0, DType::kF32);
  return wide;
}

absl::StatusOr<ProgramBuilder::Handle> ProgramBuilder::AddWideLoop(std::string label, LoopBody body,
                                                                   std::vector<Handle> inputs,
                                                                   NodeId origin) {
  const bool products = IsSumOfProducts(body) && IsHalf(body.value.type());
  std::optional<DType> rounded;
  if (!WidenHalves(&body, &rounded)) {
    return AddLoop(std::move(label), std::move(body), std::move(inputs), origin);
  }
  if (products) {
    for (Handle& h : inputs) h = InSingle(h, origin);
    body.value = Expr::Input(body.value.arg(0).arg(0).index(), DType::kF32) *
                 Expr::Input(body.value.arg(1).arg(0).index(), DType::kF32);
  }
  ASSIGN_OR_RETURN(Handle out,
                   AddLoop(std::move(label), std::move(body), std::move(inputs), origin));
  if (!rounded) return out;
  LoopBody cast = CastBody(program_.value(out.base).type.shape, DType::kF32, *rounded);
  return AddLoop(std::string(kRounded), std::move(cast), {out}, origin);
}

absl::StatusOr<ProgramBuilder::Handle> ProgramBuilder::AddLoop(std::string label, LoopBody body,
                                                               std::vector<Handle> inputs,
                                                               NodeId origin) {
  ++count_.loop_ops;
  InlineIndices(&body, &inputs);
  bool view = body.IsView();
  // Products read their operands many times.
  const bool products = IsSumOfProducts(body);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].view) {
      NoteDirectUse(inputs[i].base, body, i);
      continue;
    }
    const bool gathered = products && LeavesGaps(*inputs[i].view) &&
                          program_.value(inputs[i].base).kind != TensorKind::kWeight;
    if (gathered || !ReadThroughView(*inputs[i].view, static_cast<int>(i), &body)) {
      inputs[i] = Handle{.base = Materialise(inputs[i]), .view = {}, .origin = inputs[i].origin};
    }
  }
  if (view && options_.absorb_views) {
    const Value& base = program_.value(inputs[0].base);
    if (IsIdentityView(body) && body.OutputType() == base.type) {
      return Handle{.base = inputs[0].base, .view = {}, .origin = origin, .step = step_};
    }
    return Handle{.base = inputs[0].base, .view = std::move(body), .origin = origin, .step = step_};
  }
  std::vector<ValueId> values;
  for (const Handle& h : inputs) values.push_back(h.base);
  NormaliseInputs(&body, &values);
  // What is left once constants are in the expression may be an input as it is: x - 0, x * 1.
  const bool same = options_.absorb_views && values.size() == 1 && IsIdentityView(body) &&
                    body.OutputType() == program_.value(values[0]).type;
  ValueId id = same ? values[0]
                    : AddNormalised(std::move(label), std::move(body), std::move(values), origin);
  return Handle{.base = id, .view = {}, .origin = origin, .step = step_};
}

absl::StatusOr<ProgramBuilder::Handle> ProgramBuilder::AddReinterpret(const OpCall& call,
                                                                      const Handle& input,
                                                                      NodeId origin) {
  ++count_.loop_ops;
  ASSIGN_OR_RETURN(TensorType type, call.def().reinterpret(call));
  ValueId base = Materialise(input);
  direct_uses_[static_cast<size_t>(base)].mixed = true;
  Value out{.type = std::move(type),
            .kind = TensorKind::kIntermediate,
            .value = {},
            .producer = static_cast<LoopId>(program_.ops.size()),
            .order = {}};
  ValueId id = AddValue(std::move(out));
  program_.ops.push_back({.kind = LoopOp::kReinterpret,
                          .label = call.def().name,
                          .origin = origin,
                          .step = step_,
                          .body = {},
                          .inputs = {base},
                          .output = id});
  return Handle{.base = id, .view = {}, .origin = origin};
}

absl::StatusOr<ProgramBuilder::Handle> ProgramBuilder::AddOpaque(const OpCall& call,
                                                                 const std::vector<Handle>& inputs,
                                                                 NodeId origin) {
  ++count_.loop_ops;
  ASSIGN_OR_RETURN(TensorType type, call.def().opaque(call));
  std::vector<ValueId> operands;
  for (int i = 0; i < call.inputs(); ++i) {
    operands.push_back(InMemory(inputs[static_cast<size_t>(i)]));
  }
  const ValueId id = AddValue({.type = std::move(type),
                               .kind = TensorKind::kIntermediate,
                               .value = {},
                               .producer = static_cast<LoopId>(program_.ops.size()),
                               .order = {}});
  program_.ops.push_back({.kind = LoopOp::kOpaque,
                          .label = call.def().name,
                          .origin = origin,
                          .step = step_,
                          .body = {},
                          .inputs = std::move(operands),
                          .output = id,
                          .attrs = std::make_shared<const AttrMap>(call.attrs())});
  return Handle{.base = id, .view = {}, .origin = origin, .step = step_};
}

absl::Status ProgramBuilder::CheckLimits() const {
  if (!too_large_.ok()) return Annotate(too_large_, "it takes a tensor that is too large");
  if (value_bytes_ > static_cast<double>(kMaxProgramBytes)) {
    return ResourceExhausted("the nodes so far take tensors of ", value_bytes_,
                             " bytes together, expected at most ", kMaxProgramBytes);
  }
  if (count_.loop_ops > options_.loop_op_limit) {
    return ResourceExhausted("the nodes so far are taken apart into more than ",
                             options_.loop_op_limit, " primitive ops");
  }
  if (count_.constant_bytes > options_.step_constant_byte_limit) {
    return ResourceExhausted("the nodes so far are taken apart into steps with more than ",
                             options_.step_constant_byte_limit, " bytes of constants");
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::AddSteps(const std::vector<Decomposition::Step>& steps, NodeId origin,
                                      StepsOf of, std::vector<std::optional<TensorType>>* types,
                                      std::vector<Handle>* handles) {
  const bool of_body = of == StepsOf::kBody;
  for (const Decomposition::Step& step : steps) {
    if (step.def == nullptr) {
      count_.constant_bytes += step.constant->byte_size();
      RETURN_IF_ERROR(CheckLimits());
      Value constant{.type = {step.constant->dtype(), Shape(step.constant->dims())},
                     .kind = TensorKind::kConstant,
                     .value = std::make_shared<const HostTensor>(*step.constant),
                     .order = {}};
      types->emplace_back(constant.type);
      if (of_body) constant.tensor = static_cast<TensorId>(handles->size());
      handles->push_back({.base = AddValue(std::move(constant)), .view = {}, .origin = origin});
      continue;
    }
    std::vector<std::optional<TensorType>> operand_types;
    std::vector<Handle> operands;
    for (Decomposition::Value v : step.inputs) {
      operand_types.push_back(v < 0 ? std::nullopt : (*types)[static_cast<size_t>(v)]);
      operands.push_back(v < 0 ? Handle() : (*handles)[static_cast<size_t>(v)]);
    }
    OpCall call(*step.def, std::move(operand_types), step.attrs, step.outputs);
    const int own = of_body ? ++steps_ : step_;
    const int outer = std::exchange(step_, own);
    absl::StatusOr<std::vector<Handle>> out =
        AddCall(call, operands, origin, /*step=*/of == StepsOf::kComposite);
    step_ = outer;
    RETURN_IF_ERROR(out.status());
    for (Handle& handle : *out) {
      handle.step = own;
      // A node of a model is rounded, and may run alone.
      if (of_body) Name(handle, static_cast<TensorId>(handles->size()));
      types->emplace_back(TypeOf(handle));
      handles->push_back(std::move(handle));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ProgramBuilder::Handle>> ProgramBuilder::AddDecomposition(
    const OpCall& call, const std::vector<Handle>& inputs, NodeId origin) {
  const bool casts = call.def().name == "CastLike";
  Decomposition steps(call, {.short_repeats = options_.open_dims});
  ASSIGN_OR_RETURN(Decomposition::Value result, call.def().decompose(steps));
  std::vector<Handle> handles = inputs;
  handles.resize(static_cast<size_t>(call.inputs()));
  std::vector<std::optional<TensorType>> types;
  for (int i = 0; i < call.inputs(); ++i) {
    types.push_back(call.has_input(i) ? std::optional(call.in(i)) : std::nullopt);
  }
  const StepsOf of = casts ? StepsOf::kCastLike : StepsOf::kComposite;
  RETURN_IF_ERROR(AddSteps(steps.steps(), origin, of, &types, &handles));
  std::vector<Handle> outputs;
  outputs.push_back(handles[static_cast<size_t>(result)]);
  for (Decomposition::Value more : steps.more_outputs()) {
    outputs.push_back(handles[static_cast<size_t>(more)]);
  }
  return outputs;
}

absl::StatusOr<std::vector<ProgramBuilder::Handle>> ProgramBuilder::AddCall(
    const OpCall& call, const std::vector<Handle>& inputs, NodeId origin, bool step) {
  ASSIGN_OR_RETURN(std::vector<Handle> outputs, AddOps(call, inputs, origin, step));
  for (Handle& handle : outputs) {
    const bool leaf = !handle.view && program_.value(handle.base).kind != TensorKind::kIntermediate;
    if (leaf || !IsNothing(handle)) continue;
    handle.base = AddNothing(TypeOf(handle));
    handle.view.reset();
  }
  return outputs;
}

// A tensor without elements is a constant, however long its other dims are: nothing is computed.
// Where dims are open it may be another one in each run.
bool ProgramBuilder::IsNothing(const Handle& handle) const {
  if (!options_.absorb_views || options_.open_dims) return false;
  const Dims dims = TypeOf(handle).shape.ToDims();
  return std::find(dims.begin(), dims.end(), 0) != dims.end();
}

ValueId ProgramBuilder::AddNothing(TensorType type) {
  auto none = std::make_shared<const HostTensor>(type.dtype, type.shape.ToDims());
  return AddValue({.type = std::move(type),
                   .kind = TensorKind::kConstant,
                   .value = std::move(none),
                   .order = {}});
}

absl::StatusOr<std::vector<ProgramBuilder::Handle>> ProgramBuilder::AddOps(
    const OpCall& call, const std::vector<Handle>& inputs, NodeId origin, bool step) {
  const OpDef& def = call.def();
  if (def.decompose) return AddDecomposition(call, inputs, origin);
  if (def.repeats) return AddRepeat(call, inputs, origin, step);
  if (def.opaque) {
    ASSIGN_OR_RETURN(Handle handle, AddOpaque(call, inputs, origin));
    RETURN_IF_ERROR(CheckLimits());
    return std::vector<Handle>{std::move(handle)};
  }
  if (!def.body) return Unimplemented("its input shape is not known before run time");
  std::vector<Handle> outputs;
  for (int i = 0; i < call.outputs(); ++i) {
    auto body = def.body(call, i);
    if (!body.ok() && absl::IsUnimplemented(body.status()) && def.reinterpret) {
      ASSIGN_OR_RETURN(Handle handle, AddReinterpret(call, inputs[0], origin));
      outputs.push_back(std::move(handle));
      continue;
    }
    RETURN_IF_ERROR(body.status());
    auto add = options_.widen_halves ? &ProgramBuilder::AddWideLoop : &ProgramBuilder::AddLoop;
    const bool rounds = step && def.name == "Cast" && IsHalf(body->value.type());
    ASSIGN_OR_RETURN(Handle handle, (this->*add)(rounds ? std::string(kRounded) : def.name,
                                                 *std::move(body), inputs, origin));
    outputs.push_back(std::move(handle));
  }
  RETURN_IF_ERROR(CheckLimits());
  return outputs;
}

void ProgramBuilder::Name(const Handle& handle, TensorId tensor) {
  Value& value = program_.values[static_cast<size_t>(handle.base)];
  if (handle.view || value.tensor != kNoTensor) return;
  // A view that changes nothing here may be one elsewhere: what a value is, its first name says.
  value.tensor = tensor;
  value.shape_class = handle.shape_class;
}

}  // namespace fusion
