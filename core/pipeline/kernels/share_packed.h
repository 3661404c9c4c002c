#pragma once

#include "core/bundle/plan.h"

namespace fusion {

/// Moves the prepared weights of `variant` into one memory with those of `plan`: what both pack
/// alike (PackAlike) comes to lie where it is in `plan`, everything else behind that. Both are
/// sound; launches of prepare stay, so that the variant is sound by itself. Pure.
void SharePacked(const Plan& plan, Plan* variant);

}  // namespace fusion
