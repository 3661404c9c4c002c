#include "core/pipeline/plan_search.h"

#include "core/codegen/backend.h"
#include "core/device/host_cpu.h"
#include "core/plan/assemble/group_terms.h"
#include "core/tune/timing_conditions.h"

namespace fusion {
namespace {

int64_t MovedBytes(const Estimate& e) {
  return e.activation_bytes + e.recompute_bytes + e.weight_bytes;
}

}  // namespace

TileSearch StartOfSearch(int level, const DeviceSpec& device, bool family, bool guard) {
  TileSearch out{.level = level};
  if (family) {
    out.reason = "dims are left open: tiles that are best for some of their values are not for all";
  } else if (guard) {
    out.reason = "kernels that check their accesses are not for measuring";
  } else if (!FindBackend(device.backend).ok()) {
    out.reason = StrCat("no code generator for target ", Quote(device.name));
  } else {
    out.state = TileSearchState::kPending;
    out.reason = "nothing has been timed yet";
  }
  return out;
}

PlanSearch::PlanSearch(const Work& work, const Planned& planned, const Toolchain& toolchain,
                       const CancelToken& until)
    : work_(work),
      device_(PlanningDevice(work)),
      planned_(planned),
      codegen_(IdentifyCodegen(work.device, toolchain, work.options)),
      choices_(*planned.model, device_, work.options, &until) {
  const Plan& plan = planned.stored->plan;
  const Target machine = HostCpu();
  const int64_t most_displaced = MostDisplacedBytes(machine);
  task_ = {.level = work.options.opt_level,
           .label = Sha256(work.device.KeyText()).ToHex(),
           .machine = MachineName(machine),
           .threads = work.device.threads,
           .kernels = {},
           .left_out = choices_.left_out()};
  int64_t moved = 0;
  for (const PlanLaunch& launch : plan.launches) {
    moved += MovedBytes(plan.groups[static_cast<size_t>(launch.group)].estimate);
  }
  for (const TunableKernel& kernel : choices_.kernels()) {
    const PlanGroup& group = plan.groups[static_cast<size_t>(kernel.group)];
    task_.kernels.push_back(
        {.ops = kernel.ops,
         .group = kernel.group,
         .displaced_bytes =
             DisplacedBytes(work.device, moved - MovedBytes(group.estimate), most_displaced),
         .run_bytes =
             ParamBytes(planned.model->kernels[static_cast<size_t>(group.kernel)].schedule),
         .pick = {.choice = kernel.pick,
                  .tiles = group.tiles,
                  .estimated_us = group.estimate.time_us,
                  .job = planned.jobs[static_cast<size_t>(group.kernel)],
                  .bound = group.bound,
                  .form = group.form,
                  .terms = group.terms},
         .others = [this, &kernel](size_t most) { return Others(kernel, most); }});
  }
}

absl::StatusOr<std::vector<SearchedTiling>> PlanSearch::Others(const TunableKernel& kernel,
                                                               size_t most) {
  ASSIGN_OR_RETURN(std::vector<TileCandidate> candidates, choices_.Others(kernel, most));
  absl::StatusOr<const Backend*> backend = FindBackend(work_.device.backend);
  std::vector<SearchedTiling> tilings;
  for (TileCandidate& candidate : candidates) {
    PlanKernel named;
    absl::Status refusal = absl::OkStatus();
    CompileJob job =
        EmitKernel(candidate.kernel, work_.device, codegen_, planned_.stored->plan.numerics,
                   backend.ok() ? *backend : nullptr, &named, &refusal);
    if (job.source.empty()) continue;  // what this backend does not emit
    KernelFacts facts =
        FactsOf(candidate.kernel.schedule, candidate.estimate, device_, work_.calibration.factors);
    tilings.push_back({.choice = std::move(candidate.choice),
                       .tiles = std::move(candidate.tiles),
                       .estimated_us = candidate.estimate.time_us,
                       .job = std::move(job),
                       .bound = std::move(facts.bound),
                       .form = std::move(facts.form),
                       .terms = std::move(facts.terms)});
  }
  return tilings;
}

}  // namespace fusion
