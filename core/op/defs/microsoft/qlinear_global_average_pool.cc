#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = GlobalAveragePool(x) of quantised x, quantised; `channels_last`: of x and y
OpDef DefineMicrosoftQlinearGlobalAveragePool() {
  return QuantisedUnaryOp(
      "com.microsoft.QLinearGlobalAveragePool", DType::kF64,
      {{.name = "channels_last", .kind = ParamSpec::kInt}},
      [](Decomposition& d, Decomposition::Value x) -> absl::StatusOr<Decomposition::Value> {
        RETURN_IF_ERROR(d.call().CheckRankAtLeast(0, 3));
        const bool last = d.call().attrs().Int("channels_last", 0) != 0;
        Dims axes;
        for (int64_t i = 0; i + 2 < d.type(x).shape.rank(); ++i) axes.push_back(i + (last ? 1 : 2));
        return d.Apply("ReduceMean", {x}, {{"axes", axes}});
      });
}

}  // namespace fusion
