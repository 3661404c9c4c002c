#include "core/pipeline/requests/lock.h"

#include "core/plan/cost/pin.h"
#include "core/wire/plan.h"

namespace fusion {
namespace {

// Digests are told by so many digits.
constexpr size_t kShown = 12;

std::string Short(const std::optional<Digest>& digest) {
  return digest.has_value() ? digest->ToHex().substr(0, kShown) : "none";
}

std::string Versions(const PlanLock& lock) {
  return StrCat("planner ", lock.planner_version, ", code generator ", lock.codegen_version, ", ",
                lock.target, " ", Short(lock.device));
}

absl::Status Differ(std::string_view what, const std::optional<Digest>& wanted,
                    const std::optional<Digest>& made, const PlanLock& lock,
                    const PlanLock& outcome) {
  return FailedPrecondition(what, " is ", Short(made), ", the lock wants ", Short(wanted),
                            "; the lock was made by ", Versions(lock), "; this is ",
                            Versions(outcome));
}

// What a run depends on.
Plan Bare(const Plan& plan) {
  Plan bare = plan;
  for (PlanGroup& group : bare.groups) {
    group = {
        .kind = group.kind, .nodes = std::move(group.nodes), .label = {}, .kernel = group.kernel};
  }
  bare.totals = {};
  bare.op_by_op = {};
  bare.device = {};
  bare.fallbacks.clear();
  bare.skipped_passes.clear();
  bare.frontier.clear();
  bare.search = {};
  bare.samples.clear();
  for (PlanVariant& variant : bare.variants) {
    variant.plan = std::make_shared<const Plan>(Bare(*variant.plan));
  }
  return bare;
}

}  // namespace

Digest ExecutableDigest(const Plan& plan) { return Sha256(PlanToBytes(Bare(plan))); }

PlanLock MakeLock(const Work& work, const PlannedModel& model, const NamedKernels& kernels) {
  FUSION_CHECK(work.graph_sha256.has_value(), "a lock names the graph that it is of");
  PlanLock lock = DecisionsOf(model);
  lock.planner_version = kPlannerVersion;
  lock.codegen_version = kernels.codegen_version;
  lock.target = work.device.name;
  lock.device = Sha256(work.device.KeyText());
  lock.graph = *work.graph_sha256;
  lock.fusion = work.options.fusion;
  lock.numerics = work.options.numerics;
  lock.plan = ExecutableDigest(model.plan);
  for (const CompileJob& job : kernels.jobs) {
    LockedKernel kernel{.label = job.label, .schedule = Sha256(job.schedule)};
    if (!job.source.empty()) kernel.source = Sha256(job.source);
    kernel.key = job.key;
    lock.kernels.push_back(std::move(kernel));
  }
  return lock;
}

absl::Status BlameVersions(const absl::Status& status, const Work& work, int codegen_version) {
  if (!absl::IsInvalidArgument(status)) return status;
  const PlanLock& lock = *work.options.lock;
  PlanLock ours{.planner_version = kPlannerVersion,
                .codegen_version = codegen_version,
                .target = work.device.name,
                .device = Sha256(work.device.KeyText())};
  bool same_device = !lock.device.has_value() || lock.device == ours.device;
  if (same_device && lock.planner_version == ours.planner_version) return status;
  return FailedPrecondition(Message(status), "; the lock was made by ", Versions(lock),
                            "; this is ", Versions(ours));
}

absl::Status CheckLock(const PlanLock& wanted, const PlanLock& made) {
  if (!wanted.kernels.empty() && wanted.kernels.size() != made.kernels.size()) {
    return FailedPrecondition("lock.kernels: the lock has ", wanted.kernels.size(),
                              ", its groups and cuts give ", made.kernels.size(),
                              "; the lock was made by ", Versions(wanted), "; this is ",
                              Versions(made));
  }
  for (size_t k = 0; k < wanted.kernels.size(); ++k) {
    const LockedKernel& a = wanted.kernels[k];
    const LockedKernel& b = made.kernels[k];
    const std::string where = StrCat("lock.kernels[", k, "] (", b.label, "): ");
    using Member = std::optional<Digest> LockedKernel::*;
    for (auto [field, digest] :
         {std::pair<const char*, Member>{"schedule_sha256", &LockedKernel::schedule},
          {"source_sha256", &LockedKernel::source},
          {"kernel_key", &LockedKernel::key}}) {
      if (!(a.*digest).has_value() || a.*digest == b.*digest) continue;
      return Differ(StrCat(where, field), a.*digest, b.*digest, wanted, made);
    }
  }
  if (wanted.plan.has_value() && wanted.plan != made.plan) {
    return Differ("lock.plan_sha256: the plan", wanted.plan, made.plan, wanted, made);
  }
  return absl::OkStatus();
}

absl::Status CanLock(const Plan& plan) {
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const PlanGroup& group = plan.groups[g];
    if (group.registered.empty()) continue;
    return FailedPrecondition("lock: group ", g, " (", group.label, ") runs the registered kernel ",
                              Quote(group.registered),
                              ": locks pin generated kernels; expected a service without it, or "
                              "numerics bitwise");
  }
  return absl::OkStatus();
}

}  // namespace fusion
