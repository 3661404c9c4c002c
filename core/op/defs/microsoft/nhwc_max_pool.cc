#include "core/op/forms.h"
#include "core/op/forms/windows.h"

namespace fusion {

/// MaxPool of x that has its channels last, like y
OpDef DefineMicrosoftNhwcMaxPool() {
  std::vector<ParamSpec> params = WindowParams();
  params.push_back({.name = "ceil_mode", .kind = ParamSpec::kInt});
  return {.name = "com.microsoft.NhwcMaxPool",
          .params = std::move(params),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            RETURN_IF_ERROR(d.call().CheckRankAtLeast(0, 3));
            ASSIGN_OR_RETURN(auto y, ChannelsFirst(d, d.in(0)));
            ASSIGN_OR_RETURN(y, d.Apply("MaxPool", {y}, d.call().attrs()));
            return ChannelsLast(d, y);
          }};
}

}  // namespace fusion
