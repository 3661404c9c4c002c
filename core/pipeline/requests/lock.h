#pragma once

#include "core/bundle/plan_lock.h"
#include "core/pipeline/kernels/kernels.h"
#include "core/pipeline/requests/resolve.h"
#include "core/plan/planner.h"

namespace fusion {

/// SHA-256 of what a run of `plan` depends on: of its bytes without what only predicts, describes
/// or tells how it came to be. Equal digests: the same kernels on the same memory in the same
/// order.
Digest ExecutableDigest(const Plan& plan);

/// Pins what planning `work` gave: with it as PlanOptions::lock the same comes out again, or
/// CheckLock says what does not. `model` and `kernels` are of `work`, which has `graph_sha256`.
PlanLock MakeLock(const Work& work, const PlannedModel& model, const NamedKernels& kernels);

/// Why the groups and cuts of work.options.lock could not be planned: InvalidArgument as it is if
/// the lock was made for the same device by the same planner; else they are to blame, so
/// FailedPrecondition that names both. Other errors stay what they are.
absl::Status BlameVersions(const absl::Status& status, const Work& work, int codegen_version);

/// FailedPrecondition, naming the first kernel and digest that differ, and versions and devices,
/// unless what `made` pins is what `wanted` asked for. What `wanted` lacks is not compared.
absl::Status CheckLock(const PlanLock& wanted, const PlanLock& made);

/// OK if a lock can pin the plan: FailedPrecondition, naming the group, if it runs a registered
/// kernel, whose source only the server has.
absl::Status CanLock(const Plan& plan);

}  // namespace fusion
