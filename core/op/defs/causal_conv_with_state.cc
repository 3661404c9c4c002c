#include "core/op/forms.h"

namespace fusion {

namespace {

absl::Status CheckCausalConv(const OpCall& call) {
  for (int i = 0; i < 4; ++i) {
    if (!call.has_input(i)) continue;
    RETURN_IF_ERROR(CheckFloat(call, i));
    RETURN_IF_ERROR(call.CheckSameType(0, i));
  }
  ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
  ASSIGN_OR_RETURN(Dims w, StaticDims(call, 1));
  if (x.size() != 3 || w.size() != 3 || x[1] < 1 || w[0] != x[1] || w[1] != 1 || w[2] < 1) {
    return InvalidArgument("inputs 0 and 1 are ", call.in(0).ToString(), " and ",
                           call.in(1).ToString(),
                           ", expected [batch, channels, length] and [channels, 1, taps]");
  }
  if (call.has_input(3) && call.shape(3) != Shape({x[0], x[1], w[2] - 1})) {
    return InvalidArgument("input 3 is ", call.in(3).ToString(), ", expected [", x[0], ",", x[1],
                           ",", w[2] - 1, "]: what came before input 0");
  }
  return absl::OkStatus();
}

}  // namespace

/// y[n, c, i] = the sum over k of w[c, 0, k] * (past, x)[n, c, i + k], plus a bias per channel:
/// each element sees those before it, zeros where there is no past; with activation silu (or swish)
/// y sigmoid(y). Output 1 is the past of what comes next.
OpDef DefineCausalConvWithState() {
  return {.name = "CausalConvWithState",
          .min_inputs = 2,
          .max_inputs = 4,
          .params = {{.name = "activation", .kind = ParamSpec::kString}},
          .min_opset = 27,
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckCausalConv(call));
            const auto* activation = call.attrs().Find<std::string>("activation");
            const bool plain = activation == nullptr || *activation == "none";
            if (!plain && *activation != "silu" && *activation != "swish") {
              return InvalidArgument("attribute \"activation\" is ", QuoteShort(*activation),
                                     ", expected none, silu or swish");
            }
            const int64_t before = call.shape(1).dim(2).value() - 1;
            Decomposition::Value x = d.in(0);
            if (call.has_input(3)) {
              ASSIGN_OR_RETURN(x, d.Apply("Concat", {d.in(3), x}, {{"axis", int64_t{2}}}));
            } else {
              ASSIGN_OR_RETURN(x, d.Apply("Pad", {x}, {{"pads", Dims{0, 0, before, 0, 0, 0}}}));
            }
            if (call.outputs() > 1) {
              const int64_t all = d.type(x).shape.dim(2).value();
              ASSIGN_OR_RETURN(auto state, SliceAlong(d, x, 2, all - before, all));
              d.SetOutput(1, state);
            }
            std::vector<Decomposition::Value> operands = {x, d.in(1)};
            if (call.has_input(2)) operands.push_back(d.in(2));
            ASSIGN_OR_RETURN(auto y, d.Apply("Conv", std::move(operands),
                                             {{"group", call.shape(0).dim(1).value()}}));
            return plain ? y : d.Apply("Swish", {y});
          }};
}

}  // namespace fusion
