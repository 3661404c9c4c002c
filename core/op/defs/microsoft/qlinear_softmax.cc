#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = softmax(x) along `axis` of quantised x, quantised; over all dims from `axis` on as Softmax
/// had it before opset 13, if `opset` is below that
OpDef DefineMicrosoftQlinearSoftmax() {
  return QuantisedUnaryOp(
      "com.microsoft.QLinearSoftmax", DType::kF32,
      {{.name = "axis", .kind = ParamSpec::kInt},
       {.name = "opset", .kind = ParamSpec::kInt, .required = true}},
      [](Decomposition& d, Decomposition::Value x) {
        const AttrMap& attrs = d.call().attrs();
        const int64_t flatten = attrs.Int("opset", 13) < 13 ? 1 : 0;
        return d.Apply("Softmax", {x}, {{"axis", attrs.Int("axis", -1)}, {"flatten", flatten}});
      });
}

}  // namespace fusion
