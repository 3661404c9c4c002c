#include "core/plan/assemble/group_terms.h"

#include "core/benefit/calibrate/kernel_form.h"
#include "core/benefit/calibrate/terms.h"
#include "core/benefit/estimate.h"

namespace fusion {

void NoteTerms(const DeviceSpec& device, const CostFactors& factors, PlannedModel* model) {
  const CostFactors inverse = Inverse(factors);
  const bool spec = factors == CostFactors();
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
    group.terms =
        TermsOf(group.estimate, model->plan.kernels[k].phases, facts[k].product_type, device);
    if (!spec) group.terms = Scaled(group.terms, inverse);
  }
}

KernelFacts FactsOf(const Schedule& schedule, const Estimate& estimate, const DeviceSpec& device,
                    const CostFactors& factors) {
  return {.bound = BoundOf(estimate, device),
          .form = FormOf(schedule),
          .terms = Scaled(TermsOf(estimate, static_cast<int>(schedule.phases.size()),
                                  ProductTypeOf(schedule, device), device),
                          Inverse(factors))};
}

}  // namespace fusion
