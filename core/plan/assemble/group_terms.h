#pragma once

#include "core/device/device_spec.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {

/// Sets terms and form of the groups of `model->plan` (PlanGroup::terms, PlanGroup::form) from the
/// schedules of their kernels. `device`: the spec that the estimates were made with. Groups that
/// registered kernels run stay without, and so do groups of loop bodies, whose passes have other
/// costs. `factors`: those of `device` on its spec; the terms are with the constants of the spec.
/// With SplitNearTerms.
void NoteTerms(const DeviceSpec& device, const CostFactors& factors, PlannedModel* model);

/// Divides the traffic near the units in the terms of each group: CostTerms::local_us is what
/// private caches hold by CachedShares, shared_us all else. The sum stays, and with the spec's
/// constants the time does; with others the terms may give another time than the estimate, which
/// knows one kernel only. May be done again. Nothing is local in a plan with loops, or on a device
/// with explicit memory.
void SplitNearTerms(const DeviceSpec& device, Plan* plan);

/// What a benefit model is fitted by: as in PlanGroup.
struct KernelFacts {
  std::string bound;
  std::string form;
  CostTerms terms;
};
/// The facts of a generated kernel. `device`, `factors`: as for NoteTerms.
KernelFacts FactsOf(const Schedule& schedule, const Estimate& estimate, const DeviceSpec& device,
                    const CostFactors& factors);

}  // namespace fusion
