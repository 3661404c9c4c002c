#include <algorithm>
#include <memory>
#include <optional>

#include "core/import/bodies/control_flow_builder.h"
#include "core/import/model/onnx_attributes.h"

namespace fusion {

int64_t ControlFlowBuilder::ToldScans() const {
  const onnx::AttributeProto* count = FindAttribute(node_, "num_scan_inputs");
  return count == nullptr ? 0 : count->i();
}

absl::StatusOr<Ids> ControlFlowBuilder::Scan() {
  if (node_.opset < kFirstOpsetOfScan) {
    return Unimplemented("opset ", node_.opset,
                         " is not supported for this op; supported: ", kFirstOpsetOfScan, "..");
  }
  if (node_.opset < kFirstOpsetOfPlainScan) return BatchedScan();
  ASSIGN_OR_RETURN(const onnx::GraphProto* body, Body("body"));
  const int64_t told = ToldScans();
  const int64_t scans = std::clamp<int64_t>(told, 0, own_inputs());
  const int64_t states = own_inputs() - scans;
  const int64_t scanned = body->output_size() - states;
  if (told != scans || scans < 1 || scanned < 0 || body->input_size() != scans + states) {
    return InvalidArgument("attribute \"num_scan_inputs\" is ", told, " for ", own_inputs(),
                           " inputs and a body of ", body->input_size(), " inputs and ",
                           body->output_size(), " outputs");
  }
  for (int64_t i = 0; i < own_inputs(); ++i) {
    RETURN_IF_ERROR(CheckPresent(i, i < states ? "a state" : "scanned"));
  }
  ASSIGN_OR_RETURN(auto axes, PerScan("scan_input_axes", scans));
  ASSIGN_OR_RETURN(auto directions, PerScan("scan_input_directions", scans));
  ASSIGN_OR_RETURN(auto out_axes, PerScan("scan_output_axes", scanned));
  ASSIGN_OR_RETURN(auto out_directions, PerScan("scan_output_directions", scanned));
  return ScanAlong(*body, Ids(inputs_.begin(), inputs_.begin() + states),
                   {.inputs = Ids(inputs_.begin() + states, inputs_.begin() + own_inputs()),
                    .axes = std::move(axes),
                    .directions = std::move(directions),
                    .out_axes = std::move(out_axes),
                    .out_directions = std::move(out_directions)},
                   "");
}

absl::StatusOr<Ids> ControlFlowBuilder::BatchedScan() {
  ASSIGN_OR_RETURN(const onnx::GraphProto* body, Body("body"));
  const int64_t told = ToldScans();
  const int64_t scans = std::clamp<int64_t>(told, 0, own_inputs());
  const int64_t states = own_inputs() - 1 - scans;
  const int64_t scanned = body->output_size() - states;
  const bool agrees = told == scans && scans >= 1 && states >= 0 && scanned >= 0;
  if (!agrees || body->input_size() != scans + states) {
    return InvalidArgument("attribute \"num_scan_inputs\" is ", told, " for ", own_inputs(),
                           " inputs, the first of which are lengths, and a body of ",
                           body->input_size(), " inputs and ", body->output_size(), " outputs");
  }
  if (IsGiven(0)) {
    return Unimplemented("input 0 (lengths of the sequences of a batch) is given; only ",
                         "sequences that are as long as their tensor are supported");
  }
  ASSIGN_OR_RETURN(auto directions, PerScan("directions", scans));
  int64_t batch = -1;
  for (int64_t i = 1; i < own_inputs(); ++i) {
    RETURN_IF_ERROR(CheckPresent(i, i <= states ? "a state" : "scanned"));
    const Shape& shape = builder_.tensor(inputs_[static_cast<size_t>(i)]).type.shape;
    const bool fits = shape.rank() > 0 && shape.dim(0).is_static() &&
                      (batch < 0 || shape.dim(0).value() == batch);
    if (!fits) {
      return InvalidArgument("input ", i, " is ",
                             builder_.tensor(inputs_[static_cast<size_t>(i)]).type.ToString(),
                             ", expected a batch of known size, the same for all inputs");
    }
    if (i > states && shape.rank() < 2) {
      return InvalidArgument("input ", i, " (scanned) is ",
                             builder_.tensor(inputs_[static_cast<size_t>(i)]).type.ToString(),
                             ", expected [batch, sequence, ..]");
    }
    batch = shape.dim(0).value();
  }
  if (batch > kMaxPassesWrittenOut) {
    return ResourceExhausted("a batch of ", batch, " scans, at most ", kMaxPassesWrittenOut);
  }
  std::vector<Ids> results(static_cast<size_t>(body->output_size()));
  for (int64_t b = 0; b < batch; ++b) {
    Ids own;
    for (int64_t i = 1; i < own_inputs(); ++i) {
      ASSIGN_OR_RETURN(TensorId element, Element(inputs_[static_cast<size_t>(i)], 0, b));
      own.push_back(element);
    }
    ASSIGN_OR_RETURN(
        Ids out,
        ScanAlong(*body, Ids(own.begin(), own.begin() + states),
                  {.inputs = Ids(own.begin() + states, own.end()),
                   .axes = std::vector<int64_t>(static_cast<size_t>(scans), 0),
                   .directions = directions,
                   .out_axes = std::vector<int64_t>(static_cast<size_t>(scanned), 0),
                   .out_directions = std::vector<int64_t>(static_cast<size_t>(scanned), 0)},
                  StrCat("batch", b, "/")));
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back(out[i]);
  }
  Ids out;
  for (const Ids& result : results) {
    ASSIGN_OR_RETURN(TensorId id, Stacked(result, 0, /*backward=*/false));
    out.push_back(id);
  }
  return out;
}

absl::StatusOr<Ids> ControlFlowBuilder::ScanAlong(const onnx::GraphProto& body, const Ids& state,
                                                  Scans scans, const std::string& name) {
  ASSIGN_OR_RETURN(const int64_t passes, ScanLength(&scans));
  std::vector<BodyInput> given;
  for (TensorId id : state) given.emplace_back(builder_.tensor(id).type);
  for (size_t i = 0; i < scans.axes.size(); ++i) {
    TensorType type = builder_.tensor(scans.inputs[i]).type;
    std::vector<Dim> dims = type.shape.dims();
    dims.erase(dims.begin() + scans.axes[i]);
    type.shape = Shape(std::move(dims));
    given.emplace_back(std::move(type));
  }
  if (passes > 0 && passes <= bodies_.most_written_out) {
    return ScanWrittenOut(body, passes, state, scans, name);
  }
  absl::StatusOr<RepeatBody> made = bodies_.make(body, given, Condition::kNone);
  if (IsWrittenOut(passes, state, made, static_cast<int64_t>(scans.out_axes.size()))) {
    return ScanWrittenOut(body, passes, state, scans, name);
  }
  RETURN_IF_ERROR(made.status());
  return ScanOf(*std::move(made), passes, state, scans);
}

absl::StatusOr<Ids> ControlFlowBuilder::ScanWrittenOut(const onnx::GraphProto& body, int64_t passes,
                                                       Ids state, const Scans& scans,
                                                       const std::string& name) {
  if (passes > kMaxPassesWrittenOut) {
    return ResourceExhausted(passes, " passes that carry what does not keep its type, at most ",
                             kMaxPassesWrittenOut);
  }
  std::vector<Ids> stacks(scans.out_axes.size());
  for (int64_t pass = 0; pass < passes; ++pass) {
    Ids in = state;
    for (size_t i = 0; i < scans.axes.size(); ++i) {
      const int64_t at = scans.directions[i] != 0 ? passes - 1 - pass : pass;
      ASSIGN_OR_RETURN(TensorId element, Element(scans.inputs[i], scans.axes[i], at));
      in.push_back(element);
    }
    ASSIGN_OR_RETURN(Ids out, AddTensorBody(bodies_.add, body, in, StrCat(name, pass)));
    std::copy_n(out.begin(), state.size(), state.begin());
    for (size_t i = 0; i < stacks.size(); ++i) stacks[i].push_back(out[state.size() + i]);
  }
  for (size_t i = 0; i < stacks.size(); ++i) {
    ASSIGN_OR_RETURN(TensorId id,
                     Stacked(stacks[i], scans.out_axes[i], scans.out_directions[i] != 0));
    state.push_back(id);
  }
  return state;
}

absl::StatusOr<Ids> ControlFlowBuilder::ScanOf(RepeatBody body, int64_t passes, const Ids& state,
                                               const Scans& scans) {
  auto repeat = std::make_shared<Repeat>(std::move(body.repeat));
  repeat->most = passes;
  Ids operands = state;
  for (size_t i = 0; i < state.size(); ++i) repeat->inputs[i].port = Repeat::Port::kCarried;
  for (size_t i = 0; i < scans.axes.size(); ++i) {
    repeat->inputs[state.size() + i].port =
        scans.directions[i] != 0 ? Repeat::Port::kElementFromEnd : Repeat::Port::kElement;
    ASSIGN_OR_RETURN(TensorId along, Moved(scans.inputs[i], scans.axes[i], 0));
    operands.push_back(along);
  }
  operands.insert(operands.end(), body.captured.begin(), body.captured.end());
  for (size_t i = 0; i < scans.out_axes.size(); ++i) {
    repeat->outputs[state.size() + i].from_end = scans.out_directions[i] != 0;
  }
  ASSIGN_OR_RETURN(Ids out, AddRepeat(std::move(repeat), std::move(operands)));
  for (size_t i = 0; i < scans.out_axes.size(); ++i) {
    TensorId& stacked = out[state.size() + i];
    ASSIGN_OR_RETURN(stacked, Moved(stacked, 0, scans.out_axes[i]));
  }
  return out;
}

absl::StatusOr<TensorId> ControlFlowBuilder::Moved(TensorId id, int64_t from, int64_t to) {
  const int64_t rank = builder_.tensor(id).type.shape.rank();
  if (to < 0) to += rank;
  if (to < 0 || to >= rank) {
    return InvalidArgument("attribute \"scan_output_axes\" names axis ", to, " of ",
                           builder_.tensor(id).type.ToString());
  }
  if (from == to) return id;
  Dims perm;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != from) perm.push_back(d);
  }
  perm.insert(perm.begin() + to, from);
  return builder_.AddNode("Transpose", {id}, {{"perm", std::move(perm)}}, Name("along"));
}

absl::StatusOr<std::vector<int64_t>> ControlFlowBuilder::PerScan(std::string_view name,
                                                                 int64_t count) const {
  const onnx::AttributeProto* attribute = FindAttribute(node_, name);
  if (attribute == nullptr) return std::vector<int64_t>(static_cast<size_t>(count), 0);
  if (attribute->ints_size() != count) {
    return InvalidArgument("attribute ", Quote(name), " has ", attribute->ints_size(),
                           " entries, expected ", count);
  }
  return std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

absl::StatusOr<int64_t> ControlFlowBuilder::ScanLength(Scans* scans) const {
  int64_t length = -1;
  for (size_t i = 0; i < scans->axes.size(); ++i) {
    const TensorType& type = builder_.tensor(scans->inputs[i]).type;
    int64_t& axis = scans->axes[i];
    if (axis < 0) axis += type.shape.rank();
    if (axis < 0 || axis >= type.shape.rank()) {
      return InvalidArgument("attribute \"scan_input_axes\" has the entry ", axis, " for ",
                             type.ToString());
    }
    const Dim& dim = type.shape.dim(static_cast<int>(axis));
    if (!dim.is_static()) {
      return Unimplemented("a scan along the symbolic dim ", dim.ToString());
    }
    if (length >= 0 && dim.value() != length) {
      return InvalidArgument("the scan inputs have ", length, " and ", dim.value(), " elements");
    }
    length = dim.value();
  }
  return length;
}

absl::StatusOr<TensorId> ControlFlowBuilder::Element(TensorId from, int64_t axis, int64_t at) {
  return builder_.AddNode("Gather", {from, builder_.AddConstant("", NumberTensor(DType::kI64, at))},
                          {{"axis", axis}}, Name("element"));
}

absl::StatusOr<TensorId> ControlFlowBuilder::Stacked(Ids elements, int64_t axis, bool backward) {
  if (elements.empty()) {
    return Unimplemented("no pass is made: the shape of its scan outputs is not known");
  }
  if (backward) std::reverse(elements.begin(), elements.end());
  for (TensorId& id : elements) {
    ASSIGN_OR_RETURN(id,
                     builder_.AddNode("Unsqueeze", {id}, {{"axes", Dims{axis}}}, Name("stacked")));
  }
  ASSIGN_OR_RETURN(Ids all, builder_.AddMultiNode(*FindOp("Concat"), std::move(elements),
                                                  {{"axis", axis}}, Name("stack"), {""}));
  return all[0];
}

}  // namespace fusion
