#include <algorithm>

#include "core/pipeline/plan_builds_parts.h"
#include "core/wire/stored_plan.h"

namespace fusion {

KernelStatus ReadyStatus(const KernelArtifact& kernel, bool cached) {
  return {.key = kernel.key,
          .state = KernelState::kReady,
          .content = kernel.content,
          .bytes = static_cast<int64_t>(kernel.binary.size()),
          .check = kernel.check,
          .cached = cached,
          .compile_ms = kernel.compile_ms};
}

// Number of kernels that were found, are made, or failed. Reads nothing that a flight changes.
int PlanBuilds::DoneOf(const Batch& batch) {
  size_t under_way = 0;
  for (const auto& [k, claim] : batch.claims) under_way += claim.ticket().IsDone() ? 0 : 1;
  return static_cast<int>(batch.found.size() - under_way);
}

// Looks up the kernels of a plan and starts those that the store, and `bench` (may be null), lack.
std::shared_ptr<PlanBuilds::Batch> PlanBuilds::StartKernels(const Planned& planned,
                                                            const WorkOwner& owner,
                                                            const Bench* bench) {
  size_t count = planned.jobs.size();
  auto batch = std::make_shared<Batch>();
  batch->kernels.resize(count);
  batch->found.resize(count);
  batch->results.resize(count);
  for (size_t k = 0; k < count; ++k) {
    const CompileJob& job = planned.jobs[k];
    auto lookup = [&] { return store_.GetKernel({job.key, job.full_key}).value; };
    batch->kernels[k] = lookup();
    if (batch->kernels[k] == nullptr && bench != nullptr) {
      batch->kernels[k] = bench->Known(job.key);
      if (batch->kernels[k] != nullptr) continue;
    }
    if (batch->kernels[k] == nullptr) {
      absl::StatusOr<KernelBuilds::Started> started = kernel_builds_.Start(job, lookup, owner);
      batch->results[k] = started.status();
      if (!started.ok()) continue;
      if (auto* claim = std::get_if<KernelBuilds::Claim>(&*started)) {
        batch->claims.emplace_back(k, std::move(*claim));
        continue;
      }
      batch->kernels[k] = std::get<0>(*std::move(started));
    }
    batch->found[k] = true;
  }
  return batch;
}

// Waits until all have ended. Once `interest` (may be null) is lost, abandons the claims of the
// batch.
void PlanBuilds::WaitForKernels(Batch* batch, Interest* interest) {
  const CancelToken everybody;  // the pool ends every job, and when it stops at once
  bool wanted = true;
  auto look = [&] {
    if (!wanted || interest == nullptr || !interest->IsLost()) return;
    wanted = false;
    ++abandoned_;
    for (auto& [k, claim] : batch->claims) claim.Abandon();
  };
  for (auto& [k, claim] : batch->claims) {
    CompileResult result = claim.ticket().Wait(everybody, look);
    batch->results[k] = result.status();
    if (result.ok()) batch->kernels[k] = *std::move(result);
  }
}

// Quarantines registered kernels that failed; `work` is then without them. True if there were any.
bool PlanBuilds::Unregister(const fusion::Plan& plan, Batch* batch, WorkPtr* work) {
  const std::map<std::string, absl::Status> failed = TakeRegisteredFailures(plan, &batch->results);
  if (failed.empty()) return false;
  for (const auto& [name, why] : failed) registry_.Quarantine(name, why);
  std::map<std::string, std::string> unused = registry_.Quarantined();
  for (const auto& [name, reason] : (*work)->registered.unused) unused.try_emplace(name, reason);
  *work = WithUnused(*work, std::move(unused));
  return true;
}

Bundle PlanBuilds::BundleOf(std::shared_ptr<const StoredPlan> plan, const Batch& batch) {
  Bundle bundle{.plan = std::move(plan), .kernels = {}};
  for (size_t k = 0; k < batch.kernels.size(); ++k) {
    if (!batch.found[k] && batch.kernels[k] != nullptr) bundle.kernels.push_back(batch.kernels[k]);
  }
  return bundle;
}

void PlanBuilds::Publish(Bundle bundle, std::vector<std::string>* warnings,
                         const WorkOwner& owner) {
  bundle.tenant = owner.tenant;
  absl::Status status = store_.PutBundle(bundle);
  if (status.ok()) return;
  logger_.Warning("bundle_not_stored", {{"plan", bundle.plan ? bundle.plan->key.ToHex() : ""},
                                        {"kernels", bundle.kernels.size()},
                                        {"reason", Message(status)}});
  warnings->push_back(StrCat(kNotStored, Message(status)));
}

std::vector<KernelStatus> PlanBuilds::Describe(const fusion::Plan& plan) {
  std::vector<KernelStatus> statuses;
  for (const PlanKernel& kernel : plan.kernels) {
    if (Found<KernelArtifact> found = store_.GetKernel({kernel.key})) {
      statuses.push_back(ReadyStatus(*found.value, /*cached=*/true));
      continue;
    }
    bool failed = kernel_builds_.Failure(kernel.key).has_value();
    statuses.push_back(
        {.key = kernel.key, .state = failed ? KernelState::kFailed : KernelState::kPending});
  }
  return statuses;
}

KernelReply PlanBuilds::GetKernel(const Digest& key, const CancelToken& cancel,
                                  std::optional<std::string_view> tenant) {
  auto hidden = [&](std::string_view owner) { return tenant.has_value() && owner != *tenant; };
  const KernelReply unknown = {
      KernelState::kFailed, nullptr,
      NotFound("no kernel ", key.ToHex(), ": neither stored nor being compiled; plan again")};
  std::optional<KernelBuilds::Claim> claim = kernel_builds_.Join(key);
  if (claim.has_value() && hidden(claim->ticket().tenant())) return unknown;
  if (Found<KernelArtifact> found = store_.GetKernel({key})) {
    if (hidden(TenantOfKey(found.value->full_key))) return unknown;
    return {KernelState::kReady, found.value, absl::OkStatus()};
  }
  if (claim.has_value()) {
    CompileResult result = claim->ticket().Wait(cancel);
    if (result.ok()) return {KernelState::kReady, *std::move(result), absl::OkStatus()};
    bool gave_up = !cancel.Check().ok();
    return {gave_up ? KernelState::kPending : KernelState::kFailed, nullptr, result.status()};
  }
  std::optional<FailureCache::Failure> failure = kernel_builds_.Failure(key);
  if (!failure.has_value() || hidden(failure->tenant)) return unknown;
  return {KernelState::kFailed, nullptr, failure->why};
}

}  // namespace fusion
