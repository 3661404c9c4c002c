#pragma once

#include <string_view>
#include <vector>

#include "core/bundle/measured/measurements.h"
#include "core/bundle/report.h"
#include "core/cache/store.h"

namespace fusion {

/// Keys of the plans that a server may have made for the same graph, device, numerics and hints
/// with one kernel per node, the likeliest first: `fusionctl bench` asks for such a plan. Empty if
/// `full_key` is of such a plan, or no key of a plan.
std::vector<Digest> OpByOpKeysOf(std::string_view full_key);

/// Adds to `report`, which is of `fused`, the measured times of a plan with one kernel per node of
/// the same graph. No effect if `op_by_op` is no such plan. `measurements` must be of the kernels
/// that it launches now.
void AddOpByOp(const StoredPlan& fused, const StoredPlan& op_by_op,
               const PlanMeasurements& measurements, PlanReport* report);

/// Sets PlanReport::sections, and KernelReport::sections, whose kernels must be those of
/// MakeReport, without measured times op by op.
void AddSections(const StoredPlan& stored, const PlanMeasurements& measurements,
                 PlanReport* report);

}  // namespace fusion
