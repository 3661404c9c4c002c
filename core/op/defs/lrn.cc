#include "core/op/forms.h"
#include "core/op/forms/windows.h"

namespace fusion {

/// y = x / (bias + alpha / size * s)^beta, where s sums the squares of `size` neighbouring channels
OpDef DefineLrn() {
  return {.name = "LRN",
          .params = {{.name = "alpha", .kind = ParamSpec::kFloat},
                     {.name = "beta", .kind = ParamSpec::kFloat},
                     {.name = "bias", .kind = ParamSpec::kFloat},
                     {.name = "size", .kind = ParamSpec::kInt, .required = true}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 3));
            DType type = call.dtype(0);
            auto size = static_cast<int64_t>(call.attrs().Int("size", 1));
            if (size < 1 || size > (1 << 20))
              return InvalidArgument("attribute \"size\" is ", size);
            int rank = call.shape(0).rank();
            std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
            pads[1] = (size - 1) / 2;
            pads[static_cast<size_t>(rank + 1)] = size - 1 - pads[1];
            std::vector<int64_t> kernel(static_cast<size_t>(rank - 1), 1);
            kernel[0] = size;
            auto zero = std::make_shared<const HostTensor>(type, Dims());
            ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {d.in(0), d.in(0)}));
            ASSIGN_OR_RETURN(square,
                             d.Apply("PadConstant", {square}, {{"pads", pads}, {"value", zero}}));
            ASSIGN_OR_RETURN(auto sum,
                             d.Apply("WindowReduce", {square},
                                     {{"kernel_shape", kernel}, {"reduce", std::string("sum")}}));
            double alpha = call.attrs().Float("alpha", 1e-4) / static_cast<double>(size);
            ASSIGN_OR_RETURN(auto scaled, d.Apply("Mul", {sum, d.Scalar(type, alpha)}));
            auto bias = d.Scalar(type, call.attrs().Float("bias", 1));
            ASSIGN_OR_RETURN(auto base, d.Apply("Add", {scaled, bias}));
            auto beta = d.Scalar(type, call.attrs().Float("beta", 0.75));
            ASSIGN_OR_RETURN(auto power, d.Apply("Pow", {base, beta}));
            return d.Apply("Div", {d.in(0), power});
          }};
}

}  // namespace fusion
