#include "core/op/body/loop_body_text.h"
#include "core/op/op_def.h"

namespace fusion {

/// y = what attribute "body" says, a loop body in its text form over inputs in0, in1, ..: an op
/// that a request defines (core/custom)
OpDef DefineCustom() {
  return {.name = "Custom",
          .min_inputs = 0,
          .max_inputs = 64,
          .params = {{.name = "body", .kind = ParamSpec::kString, .required = true}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            Lexer in(*call.attrs().Find<std::string>("body"));
            int inputs = 0;
            auto operand = [&](Lexer& text) -> absl::StatusOr<DType> {
              RETURN_IF_ERROR(text.Expect(StrCat("in", inputs)));
              if (!call.has_input(inputs)) return InvalidArgument("has no input ", inputs);
              return call.dtype(inputs++);
            };
            ASSIGN_OR_RETURN(LoopBody body, ParseLoopBody(in, operand));
            if (!in.AtEnd()) return in.Error("the end");
            std::vector<TensorType> types;
            for (int i = 0; i < inputs; ++i) types.push_back(call.in(i));
            if (inputs < call.inputs()) return InvalidArgument("has an input ", inputs);
            absl::Status fits = body.Verify(types);
            if (!fits.ok()) return InvalidArgument(Message(fits));
            return body;
          }};
}

}  // namespace fusion
