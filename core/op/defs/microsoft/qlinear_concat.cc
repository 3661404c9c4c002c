#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = quantised tensors one behind the other along `axis`, quantised: inputs are scale and zero
/// point of y, then each tensor with its scale and zero point
OpDef DefineMicrosoftQlinearConcat() {
  return {.name = "com.microsoft.QLinearConcat",
          .min_inputs = 5,
          .max_inputs = kMaxVariadicInputs,
          .params = {{.name = "axis", .kind = ParamSpec::kInt, .required = true}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            if (call.inputs() % 3 != 2) {
              return InvalidArgument("has ", call.inputs(), " inputs, expected 2 and 3 for each ",
                                     "tensor");
            }
            std::vector<Decomposition::Value> pieces;
            for (int i = 2; i < call.inputs(); i += 3) {
              RETURN_IF_ERROR(call.CheckSameType(1, i));
              ASSIGN_OR_RETURN(
                  auto piece,
                  Dequantised(d, {.value = i, .scale = i + 1, .zero = i + 2}, DType::kF64));
              pieces.push_back(piece);
            }
            ASSIGN_OR_RETURN(auto y, d.Apply("Concat", std::move(pieces), call.attrs()));
            return QuantisedBy(d, y, 0, 1, call.dtype(1));
          }};
}

}  // namespace fusion
