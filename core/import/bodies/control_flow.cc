#include "core/import/bodies/control_flow.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/import/bodies/control_flow_builder.h"
#include "core/import/bodies/followed_passes.h"
#include "core/import/model/onnx_attributes.h"

namespace fusion {

Items ItemsOf(const Ids& ids) {
  Items out;
  for (TensorId id : ids) out.push_back({.tensor = id, .collection = std::nullopt});
  return out;
}

Ids IdsOf(const Items& items) {
  Ids out;
  for (const Item& item : items) out.push_back(item.tensor);
  return out;
}

absl::StatusOr<TensorId> IdOf(const Items& outputs, size_t i) {
  if (!outputs[i].collection) return outputs[i].tensor;
  return InvalidArgument("output ", i, " of the body is ", KindOf(*outputs[i].collection),
                         ", expected a tensor");
}

bool HoldsCollections(const Items& items) {
  return std::any_of(items.begin(), items.end(),
                     [](const Item& item) { return item.collection.has_value(); });
}

HostTensor NumberTensor(DType type, int64_t value) {
  HostTensor out(type, {});
  out.SetInt(0, value);
  return out;
}

absl::StatusOr<Items> ControlFlowBuilder::If() {
  ASSIGN_OR_RETURN(const onnx::GraphProto* then_body, Body("then_branch"));
  ASSIGN_OR_RETURN(const onnx::GraphProto* else_body, Body("else_branch"));
  ASSIGN_OR_RETURN(TensorId condition, Scalar(0, "the condition"));
  if (const HostTensor* known = builder_.ConstantValue(condition)) {
    const bool taken = known->GetInt(0) != 0;
    return bodies_.add(taken ? *then_body : *else_body, {}, taken ? "then" : "else");
  }
  ASSIGN_OR_RETURN(Items yes, Branch(*then_body, "then"));
  ASSIGN_OR_RETURN(Items no, Branch(*else_body, "else"));
  if (yes.size() != no.size()) {
    return InvalidArgument("the branches give ", yes.size(), " and ", no.size(), " outputs");
  }
  Items out;
  for (size_t i = 0; i < yes.size(); ++i) {
    ASSIGN_OR_RETURN(Item item, ChosenItem(condition, yes[i], no[i], "the branches give"));
    out.push_back(std::move(item));
  }
  return out;
}

absl::StatusOr<Items> ControlFlowBuilder::Loop() {
  ASSIGN_OR_RETURN(const onnx::GraphProto* body, Body("body"));
  const int64_t carried = own_inputs() - 2;
  const int64_t scanned = body->output_size() - 1 - carried;
  if (carried < 0 || scanned < 0 || body->input_size() != carried + 2) {
    return InvalidArgument("the body has ", body->input_size(), " inputs and ", body->output_size(),
                           " outputs for ", carried, " carried values");
  }
  ASSIGN_OR_RETURN(Passes passes, AskedPasses());
  for (int64_t i = 2; i < own_inputs(); ++i) {
    const bool held = items_[static_cast<size_t>(i)].collection.has_value();
    if (!held) RETURN_IF_ERROR(CheckPresent(i, "a carried value"));
  }
  const Items carries(items_.begin() + 2, items_.begin() + 2 + carried);
  if (HoldsCollections(carries)) return LoopOfCollections(*body, passes, carries, scanned);
  const Ids state = IdsOf(carries);
  // Within the body the condition holds: else there is no pass.
  HostTensor holds = NumberTensor(DType::kBool, 1);
  std::vector<BodyInput> given = {TensorType{DType::kI64, Shape()}, std::move(holds)};
  for (TensorId id : state) given.emplace_back(builder_.tensor(id).type);
  std::optional<int64_t> known = passes.known();
  // A condition may end the loop early, and then the number of rows in scan outputs is unknown.
  const bool settled = passes.alive == kNoTensor || scanned == 0;
  if (settled && known > 0 && known <= bodies_.most_written_out) {
    return LoopWrittenOut(*body, passes, carries, scanned);
  }
  absl::StatusOr<RepeatBody> made = bodies_.make(
      *body, given, passes.alive == kNoTensor ? Condition::kIgnored : Condition::kAsked);
  if (std::optional<int64_t> followed = Followed(passes, made, state)) {
    passes = {.counted = followed};
    known = followed;
    if (*known <= bodies_.most_written_out) {
      return LoopWrittenOut(*body, passes, carries, scanned);
    }
    made = bodies_.make(*body, given, Condition::kIgnored);
  }
  if (IsWrittenOut(known, state, made, scanned)) {
    return LoopWrittenOut(*body, passes, carries, scanned);
  }
  RETURN_IF_ERROR(made.status());
  ASSIGN_OR_RETURN(Ids out, LoopOf(*std::move(made), passes, state, scanned));
  return ItemsOf(out);
}

absl::StatusOr<Items> ControlFlowBuilder::Branch(const onnx::GraphProto& body,
                                                 const std::string& name) {
  absl::StatusOr<Items> made = bodies_.add(body, {}, name);
  constexpr std::string_view kUnknown = "whether a run takes this branch is not known";
  const bool misfit =
      absl::IsInvalidArgument(made.status()) || absl::IsUnimplemented(made.status());
  if (!misfit || Message(made.status()).find(kUnknown) != std::string::npos) return made;
  constexpr size_t kMostNamed = 3;
  std::vector<std::string> deciding;
  for (TensorId id : builder_.inputs()) {
    const TensorType& type = builder_.tensor(id).type;
    const bool one = type.shape.is_static() && NumElements(type.shape.ToDims()) == 1;
    if (!one || IsFloat(type.dtype)) continue;
    if (deciding.size() == kMostNamed) {
      deciding.push_back("another one");
      break;
    }
    deciding.push_back(QuoteShort(builder_.tensor(id).name));
  }
  if (deciding.empty()) return made;
  return absl::Status(
      made.status().code(),
      StrCat(Message(made.status()), "; ", kUnknown, ": if input ", StrJoin(deciding, " or "),
             " decides it, make that a constant (fusionctl: --fix NAME=VALUE)"));
}

absl::StatusOr<ControlFlowBuilder::Passes> ControlFlowBuilder::AskedPasses() {
  if (own_inputs() < 2) return InvalidArgument("has ", own_inputs(), " inputs, expected 2..");
  Passes out;
  if (IsGiven(0)) {
    ASSIGN_OR_RETURN(out.count, Scalar(0, "the number of passes"));
    if (const HostTensor* known = builder_.ConstantValue(out.count)) {
      const int64_t asked = known->GetInt(0);
      DecisionLog log(1);
      log.Add(ShapeDecision::Keeps::kNegative, static_cast<double>(asked));
      builder_.Trace(node_.name, node_.op, log);
      out.counted = std::max<int64_t>(asked, 0);
    }
  }
  if (IsGiven(1)) {
    ASSIGN_OR_RETURN(out.alive, Scalar(1, "the condition"));
    if (const HostTensor* known = builder_.ConstantValue(out.alive)) {
      out.begins = known->GetInt(0) != 0;
    }
  }
  if (out.count == kNoTensor && out.alive == kNoTensor) {
    return InvalidArgument("has neither a number of passes nor a condition: it never ends");
  }
  return out;
}

std::optional<int64_t> ControlFlowBuilder::Followed(const Passes& passes,
                                                    const absl::StatusOr<RepeatBody>& made,
                                                    const Ids& state) const {
  if (!made.ok() || made->goes_on || passes.begins != true || bodies_.most_written_out == 0 ||
      passes.known() == 0 || (passes.count != kNoTensor && !passes.counted)) {
    return std::nullopt;
  }
  // The body is that of the first pass: another one may be for other types.
  for (size_t i = 0; i < state.size(); ++i) {
    if (builder_.tensor(state[i]).type != made->outputs[1 + i]) return std::nullopt;
  }
  std::vector<const HostTensor*> given = {nullptr};
  for (const Ids& ids : {state, made->captured}) {
    for (TensorId id : ids) given.push_back(builder_.ConstantValue(id));
  }
  return FollowedPasses(made->repeat, given, state.size(),
                        std::min(passes.counted.value_or(kMaxPasses), kMaxPasses),
                        bodies_.follow_points);
}

bool ControlFlowBuilder::IsWrittenOut(std::optional<int64_t> passes, const Ids& state,
                                      const absl::StatusOr<RepeatBody>& body,
                                      int64_t scanned) const {
  if (!passes) return false;
  if (!body.ok()) return *passes <= kMaxPassesWrittenOut;
  if (*passes == 0) return false;
  const size_t conditions = body->outputs.size() - state.size() - static_cast<size_t>(scanned);
  for (size_t i = 0; i < state.size(); ++i) {
    if (builder_.tensor(state[i]).type != body->outputs[conditions + i]) return true;
  }
  // A condition may end the loop early, and then the number of rows in scan outputs is unknown.
  return *passes <= bodies_.most_written_out && (conditions == 0 || scanned == 0);
}

absl::StatusOr<Items> ControlFlowBuilder::LoopOfCollections(const onnx::GraphProto& body,
                                                            const Passes& passes,
                                                            const Items& state, int64_t scanned) {
  const bool counts = passes.known() || passes.count == kNoTensor;
  if (counts) return LoopWrittenOut(body, passes, state, scanned);
  return Unimplemented(
      "it carries a sequence or an optional, and input 0 (the number of passes) "
      "is known to a run only (fusionctl: --fix NAME=VALUE)");
}

absl::StatusOr<Items> ControlFlowBuilder::LoopWrittenOut(const onnx::GraphProto& body,
                                                         const Passes& passes, Items state,
                                                         int64_t scanned) {
  std::vector<Ids> stacks(static_cast<size_t>(scanned));
  TensorId alive = passes.alive;
  const std::optional<int64_t> most = passes.known();
  for (int64_t pass = 0; !most || pass < *most; ++pass) {
    const HostTensor* known = alive == kNoTensor ? nullptr : builder_.ConstantValue(alive);
    if (known != nullptr && known->GetInt(0) == 0) break;
    const bool certain = alive == kNoTensor || known != nullptr;
    if (!certain && scanned > 0) {
      return Unimplemented(
          "the number of passes follows from values of a run: the extent of "
          "its scan outputs is not known before");
    }
    if (!certain && !most) {
      return Unimplemented("it carries a sequence or an optional, and whether there is a pass ",
                           pass, " is known to a run only (fusionctl: --fix NAME=VALUE)");
    }
    if (pass == kMaxPassesWrittenOut) {
      return ResourceExhausted("more than ", kMaxPassesWrittenOut, " passes that carry what ",
                               "does not keep its type");
    }
    ASSIGN_OR_RETURN(Items out, Pass(body, pass, alive, state));
    for (size_t i = 0; i < state.size(); ++i) {
      Item& next = out[i + 1];
      if (!certain) {
        ASSIGN_OR_RETURN(next, ChosenItem(alive, next, state[i], "a carried value is"));
      }
      state[i] = std::move(next);
    }
    for (size_t i = 0; i < stacks.size(); ++i) {
      ASSIGN_OR_RETURN(TensorId kept, IdOf(out, 1 + state.size() + i));
      stacks[i].push_back(kept);
    }
    ASSIGN_OR_RETURN(TensorId goes_on, IdOf(out, 0));
    ASSIGN_OR_RETURN(alive, StillAlive(certain ? kNoTensor : alive, goes_on));
  }
  for (Ids& stack : stacks) {
    ASSIGN_OR_RETURN(TensorId id, Stacked(stack, 0, /*backward=*/false));
    state.push_back({.tensor = id, .collection = std::nullopt});
  }
  return state;
}

absl::StatusOr<Ids> ControlFlowBuilder::LoopOf(RepeatBody body, const Passes& passes, Ids state,
                                               int64_t scanned) {
  const bool once = body.goes_on == false;
  if (passes.known() == 0) return NoPass(body, std::move(state));
  const size_t conditions = body.goes_on ? 0 : 1;
  for (size_t i = 0; i < state.size(); ++i) {
    const TensorType& before = builder_.tensor(state[i]).type;
    const TensorType& after = body.outputs[conditions + i];
    if (before == after) continue;
    return Unimplemented("its body carries ", before.ToString(), " on as ", after.ToString(),
                         "; where a run decides how often, what is carried must keep its type");
  }
  auto repeat = std::make_shared<Repeat>(std::move(body.repeat));
  if (passes.count == kNoTensor && passes.begins == true && body.goes_on == true) {
    return InvalidArgument("has no number of passes, and its condition always holds: it never ",
                           "ends");
  }
  const bool conditional = passes.alive != kNoTensor && (!passes.begins || !body.goes_on);
  // More than there can be is no number of passes.
  const bool counts = passes.counted && (*passes.counted <= kMaxPasses || !conditional);
  repeat->counted = passes.count != kNoTensor && !passes.counted;
  const int64_t room = scanned > 0 ? kMaxCountedPasses : kMaxPasses;
  repeat->most = counts ? *passes.counted : room;
  if (repeat->most > kMaxPasses) return ResourceExhausted("more than ", kMaxPasses, " passes");
  const bool keeps_less = conditional && repeat->most > room;
  if (keeps_less) repeat->most = room;
  repeat->must_end = !once && (!counts || keeps_less);
  if (once) repeat->most = std::min<int64_t>(repeat->most, 1);
  repeat->conditional = conditional && !(once && passes.begins);
  Ids operands;
  if (repeat->counted) operands.push_back(passes.count);
  if (repeat->conditional) {
    operands.push_back(passes.alive);
    if (body.goes_on) {
      // The condition that starts the first pass holds for the later passes as well.
      auto value = static_cast<Decomposition::Value>(repeat->inputs.size());
      for (const Decomposition::Step& step : repeat->steps) value += step.outputs;
      repeat->steps.push_back({.inputs = {},
                               .attrs = {},
                               .constant = NumberTensor(DType::kBool, once ? 0 : 1),
                               .outputs = 1});
      repeat->outputs.insert(repeat->outputs.begin(), {value});
    }
  }
  repeat->inputs[0].port = Repeat::Port::kPass;
  for (size_t i = 0; i < state.size(); ++i) repeat->inputs[1 + i].port = Repeat::Port::kCarried;
  operands.insert(operands.end(), state.begin(), state.end());
  operands.insert(operands.end(), body.captured.begin(), body.captured.end());
  return AddRepeat(std::move(repeat), std::move(operands));
}

absl::StatusOr<Ids> ControlFlowBuilder::AddRepeat(std::shared_ptr<Repeat> repeat, Ids operands) {
  std::vector<std::string> names(repeat->results());
  const size_t results = repeat->carried() + repeat->stacked();
  AttrMap attrs;
  attrs.Set("body", std::shared_ptr<const Repeat>(std::move(repeat)));
  ASSIGN_OR_RETURN(Ids out, builder_.AddMultiNode(*FindOp("Repeat"), std::move(operands),
                                                  std::move(attrs), node_.name, names));
  out.resize(results);
  return out;
}

absl::StatusOr<Ids> ControlFlowBuilder::NoPass(const RepeatBody& body, Ids state) {
  const size_t first = state.size() + (body.goes_on ? 0U : 1U);
  for (size_t i = first; i < body.outputs.size(); ++i) {
    if (!body.outputs[i].shape.is_static()) {
      return Unimplemented("no pass is made: the shape of its scan outputs is not known");
    }
    Dims dims = body.outputs[i].shape.ToDims();
    dims.insert(dims.begin(), 0);
    state.push_back(builder_.AddConstant("", HostTensor(body.outputs[i].dtype, std::move(dims))));
  }
  return state;
}

absl::StatusOr<const onnx::GraphProto*> ControlFlowBuilder::Body(std::string_view name) const {
  const onnx::AttributeProto* attribute = FindAttribute(node_, name);
  if (attribute == nullptr || !attribute->has_g()) {
    return InvalidArgument("attribute ", Quote(name), " is missing");
  }
  return &attribute->g();
}

absl::Status ControlFlowBuilder::CheckPresent(int64_t i, std::string_view what) const {
  if (i < own_inputs() && inputs_[static_cast<size_t>(i)] != kNoTensor) return absl::OkStatus();
  if (i < own_inputs() && items_[static_cast<size_t>(i)].collection) {
    return InvalidArgument("input ", i, " (", what, ") is ",
                           KindOf(*items_[static_cast<size_t>(i)].collection),
                           ", expected a tensor");
  }
  return InvalidArgument("input ", i, " (", what, ") is absent but required");
}

absl::StatusOr<TensorId> ControlFlowBuilder::Scalar(size_t i, std::string_view what) {
  RETURN_IF_ERROR(CheckPresent(static_cast<int64_t>(i), what));
  const TensorType& type = builder_.tensor(inputs_[i]).type;
  if (!type.shape.is_static() || NumElements(type.shape.ToDims()) != 1 || IsFloat(type.dtype)) {
    return InvalidArgument("input ", i, " (", what, ") is ", type.ToString(),
                           ", expected one integer or bool");
  }
  if (type.shape.rank() == 0) return inputs_[i];
  return builder_.AddNode("Reshape", {inputs_[i]}, {{"shape", Dims{}}}, Name(what));
}

absl::StatusOr<Items> ControlFlowBuilder::Pass(const onnx::GraphProto& body, int64_t pass,
                                               TensorId alive, const Items& state) {
  if (alive == kNoTensor) alive = builder_.AddConstant("", NumberTensor(DType::kBool, 1));
  Items in = ItemsOf({builder_.AddConstant("", NumberTensor(DType::kI64, pass)), alive});
  in.insert(in.end(), state.begin(), state.end());
  return bodies_.add(body, in, StrCat(pass));
}

absl::StatusOr<TensorId> ControlFlowBuilder::StillAlive(TensorId before, TensorId now) {
  if (inputs_[1] == kNoTensor) return kNoTensor;  // the body's word does not count then
  const TensorType& type = builder_.tensor(now).type;
  if (type.dtype != DType::kBool || !type.shape.is_static() ||
      NumElements(type.shape.ToDims()) != 1) {
    return InvalidArgument("output 0 of the body is ", type.ToString(), ", expected one bool");
  }
  if (type.shape.rank() > 0) {
    ASSIGN_OR_RETURN(now, builder_.AddNode("Reshape", {now}, {{"shape", Dims{}}}, Name("goes")));
  }
  if (before == kNoTensor) return now;
  return builder_.AddNode("And", {before, now}, {}, Name("goes_on"));
}

absl::StatusOr<TensorId> ControlFlowBuilder::Chosen(TensorId condition, TensorId yes, TensorId no,
                                                    std::string_view what) {
  if (yes == no) return yes;
  const TensorType& a = builder_.tensor(yes).type;
  const TensorType& b = builder_.tensor(no).type;
  if (a != b) {
    return Unimplemented(what, " ", a.ToString(), " or ", b.ToString(),
                         ", as values of a run decide; only results of one type are supported");
  }
  RETURN_IF_ERROR(bodies_.count());
  return builder_.AddNode("Where", {condition, yes, no}, {}, Name("chosen"));
}

absl::StatusOr<Item> ControlFlowBuilder::ChosenItem(TensorId condition, const Item& yes,
                                                    const Item& no, std::string_view what) {
  if (!yes.collection && !no.collection) {
    ASSIGN_OR_RETURN(TensorId id, Chosen(condition, yes.tensor, no.tensor, what));
    return Item{.tensor = id, .collection = std::nullopt};
  }
  auto kind = [](const Item& item) {
    if (!item.collection) return std::string("a tensor");
    if (item.collection->is_none) return KindOf(*item.collection);
    return StrCat(KindOf(*item.collection), " of ", item.collection->elements.size());
  };
  if (kind(yes) != kind(no)) {
    return Unimplemented(what, " ", kind(yes), " or ", kind(no),
                         ", as values of a run decide; only results of one kind and length are "
                         "supported");
  }
  Item out = yes;
  for (size_t i = 0; i < out.collection->elements.size(); ++i) {
    TensorId& element = out.collection->elements[i];
    ASSIGN_OR_RETURN(element, Chosen(condition, element, no.collection->elements[i], what));
  }
  return out;
}

bool IsControlFlow(const FlatNode& node) {
  return node.domain.empty() && (node.op == "If" || node.op == "Loop" || node.op == "Scan");
}

absl::StatusOr<std::vector<TensorId>> AddTensorBody(const AddBody& add,
                                                    const onnx::GraphProto& body,
                                                    const std::vector<TensorId>& inputs,
                                                    const std::string& name) {
  ASSIGN_OR_RETURN(Items out, add(body, ItemsOf(inputs), name));
  Ids ids;
  for (size_t i = 0; i < out.size(); ++i) {
    ASSIGN_OR_RETURN(ids.emplace_back(), IdOf(out, i));
  }
  return ids;
}

absl::StatusOr<std::vector<Item>> AddControlFlow(const FlatNode& node,
                                                 const std::vector<Item>& inputs,
                                                 const Bodies& bodies, GraphBuilder* builder) {
  ControlFlowBuilder flow(node, inputs, bodies, builder);
  auto run = [&]() -> absl::StatusOr<Items> {
    if (node.op == "If") return flow.If();
    if (node.op == "Loop") return flow.Loop();
    ASSIGN_OR_RETURN(Ids out, flow.Scan());
    return ItemsOf(out);
  };
  absl::StatusOr<Items> outputs = run();
  if (!outputs.ok()) return Annotate(outputs.status(), DescribeNode(node.name, node.op));
  return outputs;
}

}  // namespace fusion
