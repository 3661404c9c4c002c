#pragma once

#include <vector>

#include "core/bundle/plan.h"

namespace fusion {

inline constexpr size_t kMaxPlanVariants = 8;

/// Position in plan.variants of the first variant that applies to these values of the symbols
/// (`units`: value / multiple, see SymbolUnits); -1: the plan itself runs.
int VariantAt(const Plan& plan, const std::vector<int64_t>& units);
/// The plan that runs for these values: a variant of `plan`, or `plan`. Valid as long as `plan`.
const Plan& PlanAt(const Plan& plan, const std::vector<int64_t>& units);
/// variants[variant], or `plan` for -1.
const Plan& VariantOf(const Plan& plan, int variant);

/// The tensor (position in plan.tensors) that a launch prepares, if it reads only weights and
/// constants and writes one prepared tensor; else -1.
int PackedBy(const Plan& plan, const PlanLaunch& launch);
/// True if a launch of `a` and one of `b` run the same kernel to pack the same weights and
/// constants into equal layouts. Their prepared tensors may have different offsets.
bool PackAlike(const Plan& a, const PlanLaunch& of_a, const Plan& b, const PlanLaunch& of_b);

/// Part of Verify: checks that each variant passes Verify itself, has the inputs, outputs and
/// weights of the plan, uses only kernels of the plan, and does not overwrite prepared weights of
/// others. InvalidArgument, naming the variant.
absl::Status CheckVariants(const Plan& plan);

}  // namespace fusion
