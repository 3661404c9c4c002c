#pragma once

#include "core/bundle/plan_lock.h"
#include "core/pipeline/kernels/kernels.h"
#include "core/pipeline/requests/resolve.h"
#include "core/plan/planner.h"

namespace fusion {

/// SHA-256 of the parts of `plan` that a run depends on; estimates, descriptions and history are
/// left out. Equal digests: the same kernels on the same memory in the same order.
Digest ExecutableDigest(const Plan& plan);

/// Makes the lock that pins a planning of `work`. With it as PlanOptions::lock the same plan is
/// made again, or CheckLock names the difference. `model` and `kernels` are those of `work`;
/// `work.graph_sha256` is set.
PlanLock MakeLock(const Work& work, const PlannedModel& model, const NamedKernels& kernels);

/// The error of planning with work.options.lock. InvalidArgument stays if the lock was made for the
/// same device by the same planner version; otherwise it becomes FailedPrecondition that names the
/// versions and devices of both. Other codes stay.
absl::Status BlameVersions(const absl::Status& status, const Work& work, int codegen_version);

/// OK if `made` pins what `wanted` pins. Otherwise FailedPrecondition with the first kernel and
/// digest that differ, and the versions and devices of both. Fields that `wanted` lacks are not
/// compared.
absl::Status CheckLock(const PlanLock& wanted, const PlanLock& made);

/// OK if a lock can pin the plan. FailedPrecondition, naming the group, if it runs a registered
/// kernel: only the server has its source.
absl::Status CanLock(const Plan& plan);

}  // namespace fusion
