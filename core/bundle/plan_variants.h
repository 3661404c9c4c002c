#pragma once

#include <vector>

#include "core/bundle/plan.h"

namespace fusion {

inline constexpr size_t kMaxPlanVariants = 8;

/// Position in plan.variants of the one that runs where the symbols have these values, in units of
/// their multiples; -1: the plan itself.
int VariantAt(const Plan& plan, const std::vector<int64_t>& units);
/// That one, or `plan`.
const Plan& PlanAt(const Plan& plan, const std::vector<int64_t>& units);
/// variants[variant], or `plan` for -1.
const Plan& VariantOf(const Plan& plan, int variant);

/// The one prepared tensor of a launch that only packs weights or constants; -1: it is another one.
int PackedBy(const Plan& plan, const PlanLaunch& launch);
/// Whether one of `a` and one of `b` pack the same in the same way, be it to other places.
bool PackAlike(const Plan& a, const PlanLaunch& of_a, const Plan& b, const PlanLaunch& of_b);

/// Part of Verify: checks that variants are for runs of the same inputs, outputs and weights, that
/// their kernels are among those of the plan, and that each is sound by itself.
absl::Status CheckVariants(const Plan& plan);

}  // namespace fusion
