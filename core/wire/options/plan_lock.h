#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/bundle/plan_lock.h"

namespace fusion::v1 {
class PlanLock;
}  // namespace fusion::v1

namespace fusion {

/// Version of the layout of v1::PlanLock that is written and read.
inline constexpr uint32_t kPlanLockVersion = 1;

/// Writes every field of `lock` into `out`, which must be empty.
void EncodeLock(const PlanLock& lock, v1::PlanLock* out);

/// Inverse of EncodeLock for untrusted input. Checks counts, positions, enums, digests and names;
/// the planner checks whether the lock fits a graph. InvalidArgument names the field
/// ("groups[3].choice: 9; expected 0..8"); Unimplemented for another layout version.
absl::StatusOr<PlanLock> DecodeLock(const v1::PlanLock& wire);

/// A lock file: v1::PlanLock in protobuf's text format. Equal locks give equal text.
std::string LockToText(const PlanLock& lock);
/// Inverse of LockToText. InvalidArgument names line and column, or the field as DecodeLock does.
absl::StatusOr<PlanLock> LockFromText(std::string_view text);

}  // namespace fusion
