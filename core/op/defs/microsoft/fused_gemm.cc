#include "core/op/forms.h"
#include "core/op/forms/fused_activation.h"

namespace fusion {

/// y = activation(Gemm(a, b, c)); the activation's numbers are `activation_alpha`, .._beta and
/// .._gamma
OpDef DefineMicrosoftFusedGemm() {
  const std::vector<ParamSpec> gemm = {{.name = "alpha", .kind = ParamSpec::kFloat},
                                       {.name = "beta", .kind = ParamSpec::kFloat},
                                       {.name = "transA", .kind = ParamSpec::kInt},
                                       {.name = "transB", .kind = ParamSpec::kInt}};
  std::vector<ParamSpec> params = gemm;
  params.push_back({.name = "activation", .kind = ParamSpec::kString});
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    params.push_back({.name = name, .kind = ParamSpec::kFloat});
  }
  return {.name = "com.microsoft.FusedGemm",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = std::move(params),
          .decompose = [gemm](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            std::vector<Decomposition::Value> inputs = {d.in(0), d.in(1)};
            if (d.call().has_input(2)) inputs.push_back(d.in(2));
            ASSIGN_OR_RETURN(auto y,
                             d.Apply("Gemm", std::move(inputs), AttrsNamed(d.call(), gemm)));
            return ActivatedByName(d, y, "activation_");
          }};
}

}  // namespace fusion
