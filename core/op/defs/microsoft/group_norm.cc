#include "core/op/forms/normalisation.h"

namespace fusion {

/// y = activation((x - mean) / sqrt(variance + epsilon) * gamma + beta), mean and variance of each
/// of `groups` groups of channels, which are last unless `channels_last` is 0
OpDef DefineMicrosoftGroupNorm() {
  return {.name = "com.microsoft.GroupNorm",
          .min_inputs = 3,
          .max_inputs = 3,
          .params = GroupNormParams(),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            RETURN_IF_ERROR(d.call().CheckRankAtLeast(0, 2));
            if (d.call().attrs().Int("channels_last", 1) != 0) return GroupNormalised(d, d.in(0));
            ASSIGN_OR_RETURN(auto y, ChannelsLast(d, d.in(0)));
            ASSIGN_OR_RETURN(y, GroupNormalised(d, y));
            return ChannelsFirst(d, y);
          }};
}

}  // namespace fusion
