#pragma once

#include "core/schedule/lower/lower.h"

namespace fusion {

/// Attribute of a CallStmt that is one of several phases of its op: "totals" gives the fold of each
/// block of a row (in: x, out: workspace), "blocks" the folds themselves (in: x, workspace).
inline constexpr char kOpaquePart[] = "part";
inline constexpr char kOpaqueTotals[] = "totals";
inline constexpr char kOpaqueBlocks[] = "blocks";

/// A group that is one opaque op, and its only schedule.
struct OpaqueKernel {
  FusionGroup group;  // outputs and views alone
  Lowered lowered;
};

struct OpaqueOptions {
  bool bitwise = false;  // folds in the order of the elements
  bool open = false;     // of a plan that leaves dims open: nothing depends on extents but numbers
};

/// The kernel of the only op of `program`, of kind kOpaque. `constant`: by value, whether it is
/// known before the first run. Rows are independent blocks; long ones of which there are fewer than
/// threads are cut into blocks whose folds are merged, as far as the options allow. What
/// CallStmt::over means, by op:
///
///   RunningFold  outer, inner; with "part" the block instead
///   RowOrder     outer, inner; none with "things"
///   BoxChoice    batch, class
///
/// Pure. ResourceExhausted for rows of 2^31 elements or more.
absl::StatusOr<OpaqueKernel> LowerOpaque(const Program& program, const std::vector<bool>& constant,
                                         const DeviceSpec& device, const OpaqueOptions& options);

}  // namespace fusion
