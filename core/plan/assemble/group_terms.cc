#include "core/plan/assemble/group_terms.h"

#include <algorithm>
#include <vector>

#include "core/benefit/estimate.h"
#include "core/benefit/kernel_form.h"
#include "core/benefit/terms.h"
#include "core/plan/assemble/cached_shares.h"

namespace fusion {
namespace {

// Which of the bytes that blocks fetch near a private cache holds depends on what ran before. A
// spec has one rate for both, so the sum stays. Which unit gets which block is not known: one of n
// units finds an n-th of what fits all of them.
void SplitNearBytes(double share, const DeviceSpec& device, CostTerms* terms) {
  const double near_us = terms->local_us + terms->shared_us;
  terms->local_us = share * near_us / std::max(device.threads, 1);
  terms->shared_us = near_us - terms->local_us;
}

// By group: the mean of its launches.
std::vector<double> SharesOfGroups(const DeviceSpec& device, const Plan& plan) {
  std::vector<double> out(plan.groups.size(), 0);
  if (device.explicit_memory) return out;
  std::vector<int> launches(plan.groups.size(), 0);
  const std::vector<double> shares =
      CachedShares(plan, device.OnChipBytes() * std::max(device.threads, 1));
  for (size_t l = 0; l < shares.size(); ++l) {
    const auto g = static_cast<size_t>(plan.launches[l].group);
    out[g] += (shares[l] - out[g]) / ++launches[g];
  }
  return out;
}

}  // namespace

void NoteTerms(const DeviceSpec& device, const CostFactors& factors, PlannedModel* model) {
  // Equal kernels have equal schedules: read each once.
  struct Facts {
    std::string form;
    std::string product_type;
  };
  std::vector<Facts> facts(model->kernels.size());
  for (size_t g = 0; g < model->plan.groups.size(); ++g) {
    PlanGroup& group = model->plan.groups[g];
    if (g < model->inner.size() && model->inner[g]) continue;
    const auto k = static_cast<size_t>(group.kernel);
    const PlannedKernel& kernel = model->kernels[k];
    if (kernel.registered != nullptr) continue;
    if (facts[k].form.empty()) {
      facts[k] = {FormOf(kernel.schedule), ProductTypeOf(kernel.schedule, device)};
    }
    group.form = facts[k].form;
    group.terms = SpecTermsOf(group.estimate, model->plan.kernels[k].phases, facts[k].product_type,
                              group.form, device, factors);
  }
  SplitNearTerms(device, &model->plan);
}

void SplitNearTerms(const DeviceSpec& device, Plan* plan) {
  const std::vector<double> shares = SharesOfGroups(device, *plan);
  for (size_t g = 0; g < plan->groups.size(); ++g) {
    if (!plan->groups[g].form.empty()) SplitNearBytes(shares[g], device, &plan->groups[g].terms);
  }
}

KernelFacts FactsOf(const Schedule& schedule, const Estimate& estimate, const DeviceSpec& device,
                    const CostFactors& factors) {
  const std::string form = FormOf(schedule);
  return {.bound = BoundOf(estimate, device),
          .form = form,
          .terms = SpecTermsOf(estimate, static_cast<int>(schedule.phases.size()),
                               ProductTypeOf(schedule, device), form, device, factors)};
}

}  // namespace fusion
