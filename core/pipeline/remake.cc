// Plans of unsigned archives.
#include "core/pipeline/plan_fusion.h"

namespace fusion {
namespace {

template <typename... Parts>
RemadePlan Unverified(const Parts&... parts) {
  return {.kernels = 0, .refused = StrCat(kUnverified, parts...)};
}

// A plan that works around a failure on the server that made it.
bool IsDetour(const Plan& plan) { return !UnfusedNodesOf(plan).empty() || !UnusedOf(plan).empty(); }

// How the kernels of the archive differ from those made here; empty: they are equal.
std::string WhyUnlike(const ClaimedPlan& claimed, const Built& built) {
  std::map<Digest, Digest> made;
  for (const auto& kernel : built.kernels) made[kernel->key] = kernel->content;
  for (const auto& [key, content] : claimed.kernels) {
    auto found = made.find(key);
    if (found == made.end()) return StrCat("kernel ", key.ToHex(), " is none of its own");
    if (found->second == content) continue;
    return StrCat("kernel ", key.ToHex(),
                  " is not what this server's compiler makes of its source; what it makes is "
                  "stored instead");
  }
  return "";
}

// If nothing can be stored, the import must end.
absl::Status CheckStored(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    if (warning.starts_with(kNotStored)) return ResourceExhausted(warning);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RemadePlan> FusionPipeline::Remake(const ClaimedPlan& claimed,
                                                  const CancelToken& cancel) {
  RETURN_IF_ERROR(cancel.Check());
  if (IsDetour(claimed.plan.plan)) {
    return Unverified(
        "a kernel of it failed where it was made, or was slow, and it was planned around that");
  }
  if (claimed.plan.plan.calibration.epoch > 0) {
    return Unverified("it was planned with constants that were measured where it was made");
  }
  absl::StatusOr<WorkPtr> of_key = resolver_.WorkOf(claimed.plan.full_key);
  if (!of_key.ok()) return Unverified(Message(of_key.status()));
  const WorkPtr work =
      WithModelName(WithUnused(*of_key, registry_.Quarantined()), claimed.plan.model_name);
  // Requests take precedence.
  const WorkOwner owner{.tenant = claimed.tenant, .background = true};
  PlanOrigin origin = PlanOrigin::kMade;
  const PlannedOr planned =
      planning_.Plan(work, /*unfused_nodes=*/{}, /*dumps=*/{}, cancel, &origin, nullptr, owner);
  RETURN_IF_ERROR(cancel.Check());
  if (!planned.ok()) {
    return Unverified("it cannot be planned here: ", Message(planned.status()));
  }
  const std::shared_ptr<const StoredPlan>& stored = (*planned)->stored;
  if (stored->content != claimed.plan.content) {
    return Unverified("it is not the plan that this server makes of its key");
  }
  RemadePlan out;
  if (claimed.kernels.empty()) {
    std::vector<std::string> warnings;
    builds_.Publish(stored, &warnings, owner);
    RETURN_IF_ERROR(CheckStored(warnings));
    return out;
  }
  const absl::Status compiles = CanCompile(work->device, toolchain_);
  if (!compiles.ok()) return Unverified("nothing can be compiled for it: ", Message(compiles));
  const BuiltOr built = builds_.Build(work, *planned, cancel, nullptr, /*goes_on=*/false, owner);
  RETURN_IF_ERROR(cancel.Check());
  if (!built.ok()) {
    return Unverified("its kernels cannot be made here: ", Message(built.status()));
  }
  RETURN_IF_ERROR(CheckStored((*built)->warnings));
  for (const bool found : (*built)->found) out.kernels += found ? 0 : 1;
  std::string unlike = (*built)->stored->content == stored->content
                           ? WhyUnlike(claimed, **built)
                           : "a kernel of it fails here; it is planned around that";
  if (!unlike.empty()) out.refused = StrCat(kUnverified, unlike);
  return out;
}

}  // namespace fusion
