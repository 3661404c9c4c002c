#pragma once

#include "core/schedule/lower/lower.h"

namespace fusion {

/// Attribute of a CallStmt that is one of two phases of a long running fold: "totals" computes the
/// fold of each block of a row (in: x, out: workspace), "blocks" the running folds (in: x and
/// workspace, out: y).
inline constexpr char kOpaquePart[] = "part";
inline constexpr char kOpaqueTotals[] = "totals";
inline constexpr char kOpaqueBlocks[] = "blocks";

/// The group of one opaque op, and its only schedule.
struct OpaqueKernel {
  FusionGroup group;  // has outputs and views only, no SMG
  Lowered lowered;
};

struct OpaqueOptions {
  bool bitwise = false;  // folds run in the order of the elements
  /// For a plan with open dims: only numbers in the schedule may depend on extents.
  bool open = false;
};

/// The kernel of `program`, whose only op must have kind kOpaque. `constant`: by value, whether it
/// is known before the first run. Rows are independent blocks. If a RunningFold has fewer rows than
/// threads and the rows are long, they are split into blocks whose folds are merged, unless
/// `options` has `bitwise` or `open`. The dims of CallStmt::over, by op:
///
///   RunningFold   outer, inner; with "part": outer, block
///   RowOrder      outer, inner; with RowOrder::things: none, one block sorts all rows
///   ChosenPlaces  none
///   BoxChoice     batch, class
///
/// Pure. ResourceExhausted if RowOrder has rows of 2^31 elements or more. Unimplemented for other
/// ops.
absl::StatusOr<OpaqueKernel> LowerOpaque(const Program& program, const std::vector<bool>& constant,
                                         const DeviceSpec& device, const OpaqueOptions& options);

}  // namespace fusion
