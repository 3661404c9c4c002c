#include "core/op/forms.h"

namespace fusion {

/// y = the largest element of each channel over all spatial dims, which keep the extent 1
OpDef DefineGlobalMaxPool() {
  return {.name = "GlobalMaxPool",
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            RETURN_IF_ERROR(d.call().CheckRankAtLeast(0, 2));
            std::vector<int64_t> axes;
            for (int64_t i = 2; i < d.call().shape(0).rank(); ++i) axes.push_back(i);
            return d.Apply("ReduceMax", {d.in(0)},
                           {{"axes", axes}, {"noop_with_empty_axes", int64_t{1}}});
          }};
}

}  // namespace fusion
