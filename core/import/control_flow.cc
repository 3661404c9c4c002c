#include "core/import/control_flow.h"

#include <algorithm>

#include "core/import/onnx_attributes.h"

namespace fusion {
namespace {

using Ids = std::vector<TensorId>;

HostTensor Number(DType type, int64_t value) {
  HostTensor out(type, {});
  out.SetInt(0, value);
  return out;
}

class ControlFlow {
 public:
  ControlFlow(const FlatNode& node, const Ids& inputs, const AddBody& add_body,
              GraphBuilder* builder)
      : node_(node), inputs_(inputs), add_body_(add_body), builder_(*builder) {}

  absl::StatusOr<Ids> If() {
    ASSIGN_OR_RETURN(const onnx::GraphProto* then_body, Body("then_branch"));
    ASSIGN_OR_RETURN(const onnx::GraphProto* else_body, Body("else_branch"));
    ASSIGN_OR_RETURN(TensorId condition, Scalar(0, "the condition"));
    if (const HostTensor* known = builder_.ConstantValue(condition)) {
      const bool taken = known->GetInt(0) != 0;
      return add_body_(taken ? *then_body : *else_body, {}, taken ? "then" : "else");
    }
    ASSIGN_OR_RETURN(Ids yes, add_body_(*then_body, {}, "then"));
    ASSIGN_OR_RETURN(Ids no, add_body_(*else_body, {}, "else"));
    if (yes.size() != no.size()) {
      return InvalidArgument("the branches give ", yes.size(), " and ", no.size(), " outputs");
    }
    Ids out;
    for (size_t i = 0; i < yes.size(); ++i) {
      ASSIGN_OR_RETURN(TensorId id, Chosen(condition, yes[i], no[i], "the branches give"));
      out.push_back(id);
    }
    return out;
  }

  absl::StatusOr<Ids> Loop() {
    ASSIGN_OR_RETURN(const onnx::GraphProto* body, Body("body"));
    const int64_t carried = own_inputs() - 2;
    const int64_t scanned = body->output_size() - 1 - carried;
    if (carried < 0 || scanned < 0 || body->input_size() != carried + 2) {
      return InvalidArgument("the body has ", body->input_size(), " inputs and ",
                             body->output_size(), " outputs for ", carried, " carried values");
    }
    ASSIGN_OR_RETURN(int64_t most, MostPasses());
    TensorId alive = inputs_[1];
    if (alive != kNoTensor) {
      ASSIGN_OR_RETURN(alive, Scalar(1, "the condition"));
    }
    for (int64_t i = 2; i < own_inputs(); ++i) RETURN_IF_ERROR(CheckPresent(i, "a carried value"));
    Ids state(inputs_.begin() + 2, inputs_.begin() + 2 + carried);
    std::vector<Ids> stacks(static_cast<size_t>(scanned));
    for (int64_t pass = 0; pass < most; ++pass) {
      const HostTensor* known = alive == kNoTensor ? nullptr : builder_.ConstantValue(alive);
      if (known != nullptr && known->GetInt(0) == 0) break;
      const bool certain = alive == kNoTensor || known != nullptr;
      if (!certain && scanned > 0) {
        return Unimplemented(
            "the number of passes follows from values of a run: the extent of "
            "its scan outputs is not known before");
      }
      if (most > kMaxPasses && pass == kMaxPasses) {
        return ResourceExhausted("more than ", kMaxPasses, " passes");
      }
      ASSIGN_OR_RETURN(Ids out, Pass(*body, pass, alive, state));
      for (size_t i = 0; i < state.size(); ++i) {
        TensorId next = out[i + 1];
        if (!certain) {
          ASSIGN_OR_RETURN(next, Chosen(alive, next, state[i], "a carried value is"));
        }
        state[i] = next;
      }
      for (size_t i = 0; i < stacks.size(); ++i) stacks[i].push_back(out[1 + state.size() + i]);
      ASSIGN_OR_RETURN(alive, StillAlive(certain ? kNoTensor : alive, out[0]));
    }
    for (Ids& stack : stacks) {
      ASSIGN_OR_RETURN(TensorId id, Stacked(stack, 0, /*backward=*/false));
      state.push_back(id);
    }
    return state;
  }

  absl::StatusOr<Ids> Scan() {
    if (node_.opset < kFirstOpsetOfScan) {
      return Unimplemented("opset ", node_.opset,
                           " is not supported for this op; supported: ", kFirstOpsetOfScan, "..");
    }
    ASSIGN_OR_RETURN(const onnx::GraphProto* body, Body("body"));
    const onnx::AttributeProto* count = FindAttribute(node_, "num_scan_inputs");
    const int64_t scans = count == nullptr ? 0 : count->i();
    const int64_t states = own_inputs() - scans;
    const int64_t scanned = body->output_size() - states;
    if (scans < 1 || states < 0 || scanned < 0 || body->input_size() != scans + states) {
      return InvalidArgument("attribute \"num_scan_inputs\" is ", scans, " for ", own_inputs(),
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
    ASSIGN_OR_RETURN(int64_t passes, ScanLength(states, &axes));
    Ids state(inputs_.begin(), inputs_.begin() + states);
    std::vector<Ids> stacks(static_cast<size_t>(scanned));
    for (int64_t pass = 0; pass < passes; ++pass) {
      Ids in = state;
      for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t at = directions[i] != 0 ? passes - 1 - pass : pass;
        ASSIGN_OR_RETURN(TensorId element,
                         Element(inputs_[static_cast<size_t>(states) + i], axes[i], at));
        in.push_back(element);
      }
      ASSIGN_OR_RETURN(Ids out, add_body_(*body, in, StrCat(pass)));
      std::copy_n(out.begin(), state.size(), state.begin());
      for (size_t i = 0; i < stacks.size(); ++i) stacks[i].push_back(out[state.size() + i]);
    }
    for (size_t i = 0; i < stacks.size(); ++i) {
      ASSIGN_OR_RETURN(TensorId id, Stacked(stacks[i], out_axes[i], out_directions[i] != 0));
      state.push_back(id);
    }
    return state;
  }

 private:
  absl::StatusOr<const onnx::GraphProto*> Body(std::string_view name) const {
    const onnx::AttributeProto* attribute = FindAttribute(node_, name);
    if (attribute == nullptr || !attribute->has_g()) {
      return InvalidArgument("attribute ", Quote(name), " is missing");
    }
    return &attribute->g();
  }

  // Without what the bodies use from outside.
  int64_t own_inputs() const { return node_.proto->input_size(); }

  absl::Status CheckPresent(int64_t i, std::string_view what) const {
    if (i < own_inputs() && inputs_[static_cast<size_t>(i)] != kNoTensor) return absl::OkStatus();
    return InvalidArgument("input ", i, " (", what, ") is absent but required");
  }

  // Input i, of one element, as a scalar.
  absl::StatusOr<TensorId> Scalar(size_t i, std::string_view what) {
    RETURN_IF_ERROR(CheckPresent(static_cast<int64_t>(i), what));
    const TensorType& type = builder_.tensor(inputs_[i]).type;
    if (!type.shape.is_static() || NumElements(type.shape.ToDims()) != 1 || IsFloat(type.dtype)) {
      return InvalidArgument("input ", i, " (", what, ") is ", type.ToString(),
                             ", expected one integer or bool");
    }
    if (type.shape.rank() == 0) return inputs_[i];
    return builder_.AddNode("Reshape", {inputs_[i]}, {{"shape", Dims{}}}, Name(what));
  }

  // The first input of a Loop, or more passes than there may be.
  absl::StatusOr<int64_t> MostPasses() {
    if (own_inputs() < 2) return InvalidArgument("has ", own_inputs(), " inputs, expected 2..");
    if (inputs_[0] == kNoTensor) return kMaxPasses + 1;
    ASSIGN_OR_RETURN(TensorId id, Scalar(0, "the number of passes"));
    const HostTensor* known = builder_.ConstantValue(id);
    if (known == nullptr) {
      return Unimplemented("the number of passes, input 0 ",
                           QuoteShort(builder_.tensor(inputs_[0]).name),
                           ", is not a constant; only constants are supported here");
    }
    return known->GetInt(0);
  }

  absl::StatusOr<Ids> Pass(const onnx::GraphProto& body, int64_t pass, TensorId alive,
                           const Ids& state) {
    Ids in = {builder_.AddConstant("", Number(DType::kI64, pass)), alive};
    if (alive == kNoTensor) in[1] = builder_.AddConstant("", Number(DType::kBool, 1));
    in.insert(in.end(), state.begin(), state.end());
    return add_body_(body, in, StrCat(pass));
  }

  // Whether there is a next pass after one that was only made if `before`, and said `now`.
  absl::StatusOr<TensorId> StillAlive(TensorId before, TensorId now) {
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

  absl::StatusOr<TensorId> Chosen(TensorId condition, TensorId yes, TensorId no,
                                  std::string_view what) {
    if (yes == no) return yes;
    const TensorType& a = builder_.tensor(yes).type;
    const TensorType& b = builder_.tensor(no).type;
    if (a != b) {
      return Unimplemented(what, " ", a.ToString(), " or ", b.ToString(),
                           ", as values of a run decide; only results of one type are supported");
    }
    return builder_.AddNode("Where", {condition, yes, no}, {}, Name("chosen"));
  }

  // A list attribute of Scan, 0 each if it is absent.
  absl::StatusOr<std::vector<int64_t>> PerScan(std::string_view name, int64_t count) const {
    const onnx::AttributeProto* attribute = FindAttribute(node_, name);
    if (attribute == nullptr) return std::vector<int64_t>(static_cast<size_t>(count), 0);
    if (attribute->ints_size() != count) {
      return InvalidArgument("attribute ", Quote(name), " has ", attribute->ints_size(),
                             " entries, expected ", count);
    }
    return std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
  }

  // The common extent of the scan inputs along `axes`, which are normalised.
  absl::StatusOr<int64_t> ScanLength(int64_t states, std::vector<int64_t>* axes) const {
    int64_t length = -1;
    for (size_t i = 0; i < axes->size(); ++i) {
      const TensorType& type = builder_.tensor(inputs_[static_cast<size_t>(states) + i]).type;
      int64_t& axis = (*axes)[i];
      if (axis < 0) axis += type.shape.rank();
      if (axis < 0 || axis >= type.shape.rank()) {
        return InvalidArgument("attribute \"scan_input_axes\" has the entry ", (*axes)[i], " for ",
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
    if (length > kMaxPasses) return ResourceExhausted(length, " passes, at most ", kMaxPasses);
    return length;
  }

  absl::StatusOr<TensorId> Element(TensorId from, int64_t axis, int64_t at) {
    return builder_.AddNode("Gather", {from, builder_.AddConstant("", Number(DType::kI64, at))},
                            {{"axis", axis}}, Name("element"));
  }

  // What the passes gave, one behind the other along a new dim.
  absl::StatusOr<TensorId> Stacked(Ids elements, int64_t axis, bool backward) {
    if (elements.empty()) {
      return Unimplemented("no pass is made: the shape of its scan outputs is not known");
    }
    if (backward) std::reverse(elements.begin(), elements.end());
    for (TensorId& id : elements) {
      ASSIGN_OR_RETURN(
          id, builder_.AddNode("Unsqueeze", {id}, {{"axes", Dims{axis}}}, Name("stacked")));
    }
    ASSIGN_OR_RETURN(Ids all, builder_.AddMultiNode(*FindOp("Concat"), std::move(elements),
                                                    {{"axis", axis}}, Name("stack"), {""}));
    return all[0];
  }

  std::string Name(std::string_view what) const { return StrCat(node_.name, "/", what); }

  const FlatNode& node_;
  const Ids& inputs_;
  const AddBody& add_body_;
  GraphBuilder& builder_;
};

}  // namespace

bool IsControlFlow(const FlatNode& node) {
  return node.domain.empty() && (node.op == "If" || node.op == "Loop" || node.op == "Scan");
}

absl::StatusOr<std::vector<TensorId>> AddControlFlow(const FlatNode& node,
                                                     const std::vector<TensorId>& inputs,
                                                     const AddBody& add_body,
                                                     GraphBuilder* builder) {
  ControlFlow flow(node, inputs, add_body, builder);
  absl::StatusOr<Ids> outputs = node.op == "If"     ? flow.If()
                                : node.op == "Loop" ? flow.Loop()
                                                    : flow.Scan();
  if (!outputs.ok()) return Annotate(outputs.status(), DescribeNode(node.name, node.op));
  return outputs;
}

}  // namespace fusion
