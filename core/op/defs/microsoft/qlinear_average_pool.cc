#include "core/op/forms.h"
#include "core/op/forms/quantised.h"
#include "core/op/forms/windows.h"

namespace fusion {

/// y = AveragePool(x) of quantised x, quantised; `channels_last`: of x and y
OpDef DefineMicrosoftQlinearAveragePool() {
  std::vector<ParamSpec> pool = WindowParams();
  pool.push_back({.name = "ceil_mode", .kind = ParamSpec::kInt});
  pool.push_back({.name = "count_include_pad", .kind = ParamSpec::kInt});
  std::vector<ParamSpec> params = pool;
  params.push_back({.name = "channels_last", .kind = ParamSpec::kInt});
  return QuantisedUnaryOp(
      "com.microsoft.QLinearAveragePool", DType::kF64, std::move(params),
      [pool](Decomposition& d, Decomposition::Value x) -> absl::StatusOr<Decomposition::Value> {
        RETURN_IF_ERROR(d.call().CheckRankAtLeast(0, 3));
        const bool last = d.call().attrs().Int("channels_last", 0) != 0;
        if (last) {
          ASSIGN_OR_RETURN(x, ChannelsFirst(d, x));
        }
        ASSIGN_OR_RETURN(x, d.Apply("AveragePool", {x}, AttrsNamed(d.call(), pool)));
        return last ? ChannelsLast(d, x) : x;
      });
}

}  // namespace fusion
