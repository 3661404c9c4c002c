// Stored plans that are made again: with constants that measurements have corrected, or without a
// fusion that was measured slower than its parts.
#include "core/benefit/terms.h"
#include "core/learn/texts.h"
#include "core/pipeline/plan_fusion.h"
#include "core/plan/assemble/group_terms.h"

namespace fusion {
namespace {

// The estimated time of a run with these factors, in microseconds. Plans of earlier versions did
// not tell private caches apart.
double CalibratedUs(Plan plan, const DeviceSpec& spec, const CostFactors& factors) {
  SplitNearTerms(spec, &plan);
  double us = 0;
  for (const PlanLaunch& launch : plan.launches) {
    const PlanGroup& group = plan.groups[static_cast<size_t>(launch.group)];
    us +=
        group.form.empty() ? group.estimate.time_us : ExpectedUs(group.terms, group.form, factors);
  }
  return us;
}

}  // namespace

void FusionPipeline::StartRenewal(const WorkPtr& asked,
                                  const std::shared_ptr<const StoredPlan>& old) {
  if (!IsRenewalWanted(old->key)) return;
  std::optional<Renewal> renewal = epochs_->Take(old->key);
  if (!renewal.has_value()) return;
  if (asked->options.lock != nullptr || old->plan.search.level > 0 || store_.IsPinned(old->key)) {
    epochs_->OnRenewed(old->key, old->model_name, asked->options.tenant, *renewal,
                       {.reason = "it is locked, pinned or tuned"});
    return;
  }
  const WorkPtr work =
      WithCalibration(WithUnused(asked, UnusedOf(old->plan)), renewal->calibration);
  const WorkOwner owner{.tenant = work->options.tenant, .background = true};
  const absl::Status submitted = renewals_.SubmitFor(
      owner, {.run = [this, work, old, renewal = *renewal] {
        const RenewalOutcome outcome = Renew(work, *old, renewal);
        if (!stopping_.Check().ok()) return;  // says nothing about the plan
        epochs_->OnRenewed(old->key, old->model_name, work->options.tenant, renewal, outcome);
      }});
  if (!submitted.ok()) epochs_->Want(old->key, work->options.tenant, *renewal);  // try again
}

RenewalOutcome FusionPipeline::Renew(const WorkPtr& work, const StoredPlan& old,
                                     const Renewal& renewal) {
  UnfusedNodes unfused = UnfusedNodesOf(old.plan);
  for (int node : renewal.fuse_again) unfused.erase(node);
  unfused.insert(renewal.unfuse.begin(), renewal.unfuse.end());
  const WorkOwner owner{.tenant = work->options.tenant, .background = true};
  RenewalOutcome out;
  PlanOrigin origin = PlanOrigin::kMade;
  const PlannedOr planned =
      planning_.Plan(work, unfused, /*dumps=*/{}, stopping_, &origin, nullptr, owner);
  if (!planned.ok()) {
    out.reason = StrCat("it cannot be planned: ", Message(planned.status()));
    return out;
  }
  const fusion::Plan& plan = (*planned)->stored->plan;
  out.old_us = CalibratedUs(old.plan, work->device, renewal.calibration.factors);
  out.new_us = CalibratedUs(plan, work->device, renewal.calibration.factors);
  if (LaunchedKernels(plan) == LaunchedKernels(old.plan)) {
    out.reason = "the new plan has the same kernels";
    return out;
  }
  const double gain = out.new_us > 0 ? out.old_us / out.new_us - 1 : 0;
  if (renewal.least_gain >= 0 && gain <= renewal.least_gain) {
    out.reason = StrCat("the estimated gain of ", PercentText(gain), " is within the noise of ",
                        PercentText(renewal.least_gain));
    return out;
  }
  // Planning took a while.
  if (store_.IsPinned(old.key)) {
    out.reason = "it was pinned meanwhile";
    return out;
  }
  const BuiltOr built = builds_.Build(work, *planned, stopping_, nullptr, /*goes_on=*/true, owner);
  if (!built.ok()) {
    out.reason = StrCat("its kernels cannot be made: ", Message(built.status()));
    return out;
  }
  out.changed = true;
  return out;
}

absl::StatusOr<EpochPlan> FusionPipeline::Preview(const StoredPlan& stored,
                                                  const PlanCalibration& calibration,
                                                  const CancelToken& cancel) {
  ASSIGN_OR_RETURN(const WorkPtr of_key, resolver_.WorkOf(stored.full_key));
  const WorkPtr work = WithModelName(
      WithCalibration(WithUnused(of_key, UnusedOf(stored.plan)), calibration), stored.model_name);
  const WorkOwner owner{.tenant = work->options.tenant, .background = true};
  PlanOrigin origin = PlanOrigin::kMade;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Planned> planned,
                   planning_.Plan(work, UnfusedNodesOf(stored.plan), /*dumps=*/{}, cancel, &origin,
                                  nullptr, owner));
  const fusion::Plan& plan = planned->stored->plan;
  const bool same = LaunchedKernels(plan) == LaunchedKernels(stored.plan);
  return EpochPlan{.plan_key = stored.key,
                   .model_name = stored.model_name,
                   .old_us = CalibratedUs(stored.plan, work->device, calibration.factors),
                   .new_us = CalibratedUs(plan, work->device, calibration.factors),
                   .verdict = same ? "stays: the new plan has the same kernels" : "would change"};
}

}  // namespace fusion
