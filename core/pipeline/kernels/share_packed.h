#pragma once

#include "core/bundle/plan.h"

namespace fusion {

/// Places the prepared weights of `variant` in one memory with those of `plan`. Weights that both
/// pack alike (PackAlike) share the place that they have in `plan`; all others follow behind. Both
/// plans pass Verify. The prepare launches of `variant` stay, so that it also works alone. Pure.
void SharePacked(const Plan& plan, Plan* variant);

}  // namespace fusion
