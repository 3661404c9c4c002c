#include <cmath>

#include "core/op/forms.h"

namespace fusion {

/// y = alpha * op(a) * op(b) + beta * c, where op transposes if asked
OpDef DefineGemm() {
  return {.name = "Gemm",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = {{.name = "alpha", .kind = ParamSpec::kFloat},
                     {.name = "beta", .kind = ParamSpec::kFloat},
                     {.name = "transA", .kind = ParamSpec::kInt},
                     {.name = "transB", .kind = ParamSpec::kInt}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            Decomposition::Value operand[2] = {d.in(0), d.in(1)};
            const char* names[2] = {"transA", "transB"};
            for (int i = 0; i < 2; ++i) {
              if (call.shape(i).rank() != 2) {
                return InvalidArgument("input ", i, " ", call.in(i).ToString(),
                                       ", expected rank 2");
              }
              if (call.attrs().Int(names[i], 0) == 0) continue;
              ASSIGN_OR_RETURN(operand[i], d.Apply("Transpose", {operand[i]},
                                                   {{"perm", std::vector<int64_t>{1, 0}}}));
            }
            ASSIGN_OR_RETURN(auto y, d.Apply("MatMul", {operand[0], operand[1]}));
            double alpha = call.attrs().Float("alpha", 1);
            double beta = call.attrs().Float("beta", 1);
            DType type = call.dtype(0);
            bool whole = alpha == std::trunc(alpha) && beta == std::trunc(beta);
            if (!IsFloat(type) && !whole) {
              return Unimplemented("alpha ", alpha, " and beta ", beta, " scale ", DTypeName(type),
                                   " inputs; expected whole numbers");
            }
            if (alpha != 1) {
              ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, d.Scalar(type, alpha)}));
            }
            if (!call.has_input(2) || beta == 0) return y;
            Decomposition::Value c = d.in(2);
            if (beta != 1) {
              ASSIGN_OR_RETURN(c, d.Apply("Mul", {c, d.Scalar(type, beta)}));
            }
            TensorType product = d.type(y);
            ASSIGN_OR_RETURN(auto sum, d.Apply("Add", {y, c}));
            if (d.type(sum) != product) {
              return InvalidArgument("input 2 ", call.in(2).ToString(),
                                     " does not broadcast to the product ", product.ToString());
            }
            return sum;
          },
          .normalise = NormaliseOldBroadcast};
}

}  // namespace fusion
