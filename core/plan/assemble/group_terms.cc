#include "core/plan/assemble/group_terms.h"

#include "core/benefit/calibrate/kernel_form.h"
#include "core/benefit/calibrate/terms.h"
#include "core/benefit/estimate.h"

namespace fusion {

void NoteTerms(const DeviceSpec& device, PlannedModel* model) {
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
  }
}

KernelFacts FactsOf(const Schedule& schedule, const Estimate& estimate, const DeviceSpec& device) {
  return {.bound = BoundOf(estimate, device),
          .form = FormOf(schedule),
          .terms = TermsOf(estimate, static_cast<int>(schedule.phases.size()),
                           ProductTypeOf(schedule, device), device)};
}

}  // namespace fusion
