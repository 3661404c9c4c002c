#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = alpha * op(a) op(b) + c of quantised a and b, where op transposes if asked: inputs are a and
/// b with scale and zero point (of b for all or for each column), c in i32 as a multiple of
/// alpha * the product of both scales, and scale and zero point of y, without which y is f32
OpDef DefineMicrosoftQgemm() {
  return {
      .name = "com.microsoft.QGemm",
      .min_inputs = 6,
      .max_inputs = 9,
      .params = {{.name = "alpha", .kind = ParamSpec::kFloat},
                 {.name = "transA", .kind = ParamSpec::kInt},
                 {.name = "transB", .kind = ParamSpec::kInt}},
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        Decomposition::Value operand[2] = {};
        const int trans_b = call.attrs().Int("transB", 0) != 0 ? 1 : 0;
        const int axis_of_columns = 1 - trans_b;
        for (int i : {0, 3}) {
          RETURN_IF_ERROR(CheckQuantised(call, i));
          RETURN_IF_ERROR(call.CheckSameType(i, i + 2));
          if (call.shape(i).rank() != 2) {
            return InvalidArgument("input ", i, " ", call.in(i).ToString(), ", expected rank 2");
          }
          const int axis = i == 0 ? 0 : axis_of_columns;
          ASSIGN_OR_RETURN(auto zero, i == 0
                                          ? QuantisationOf(d, 2, 0, 0, Dim(1))
                                          : QuantisationOf(d, 5, 2, axis, call.shape(3).dim(axis)));
          ASSIGN_OR_RETURN(auto wide, WithoutZeroPoint(d, d.in(i), zero));
          if (call.attrs().Int(i == 0 ? "transA" : "transB", 0) != 0) {
            ASSIGN_OR_RETURN(wide, d.Apply("Transpose", {wide}, {{"perm", Dims{1, 0}}}));
          }
          operand[i == 0 ? 0 : 1] = wide;
        }
        ASSIGN_OR_RETURN(auto sums, d.Apply("MatMul", {operand[0], operand[1]}));
        if (call.has_input(6)) {
          const TensorType product = d.type(sums);
          ASSIGN_OR_RETURN(sums, d.Apply("Add", {sums, d.in(6)}));
          if (d.type(sums) != product) {
            return InvalidArgument("input 6 ", call.in(6).ToString(),
                                   " does not broadcast to the product ", product.ToString());
          }
        }
        ASSIGN_OR_RETURN(auto a_scale, QuantisationOf(d, 1, 0, 0, Dim(1)));
        ASSIGN_OR_RETURN(auto scale,
                         QuantisationOf(d, 4, 2, 1, call.shape(3).dim(axis_of_columns)));
        ASSIGN_OR_RETURN(scale, d.Apply("Mul", {a_scale, scale}));
        const DType type = d.type(scale).dtype;
        if (call.attrs().Float("alpha", 1) != 1) {
          ASSIGN_OR_RETURN(scale,
                           d.Apply("Mul", {scale, d.Scalar(type, call.attrs().Float("alpha", 1))}));
        }
        if (call.has_input(7) != call.has_input(8)) {
          return InvalidArgument(
              "of inputs 7 and 8 (y_scale and y_zero_point) one is absent, "
              "expected both or none");
        }
        if (call.has_input(7)) return Requantised(d, sums, scale, 7, 8);
        ASSIGN_OR_RETURN(auto y, CastTo(d, sums, type));
        return d.Apply("Mul", {y, scale});
      }};
}

}  // namespace fusion
