#pragma once

#include <string>
#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

// Rules for choices. EnumerateChoices obeys them; choices from elsewhere (locks, timed tiles) are
// checked against them.

/// Why a dim may not be tiled into parallel blocks; "" if it may. It must be sliceable and in every
/// output, and no block may repeat a whole reduction (recomputing a part in a halo is allowed).
/// With `forbid_recompute` no block may repeat anything.
std::string WhyNotParallel(const FusionGroup& group, DimId dim, bool forbid_recompute);
/// The dims with WhyNotParallel == "", ascending.
std::vector<DimId> ParallelDims(const FusionGroup& group, bool forbid_recompute);

/// The values of ProductChoice::swap that product `op` may have, the default first. One value if
/// only one operand has output dims of its own, or if ColumnPack supports the element types in one
/// order only. Otherwise a constant gives the columns, since it is packed before the first run; the
/// other operand may give them too if it is contiguous along them (the pixels of an image). If
/// neither operand is constant, both values are allowed.
std::vector<bool> OperandRoles(const FusionGroup& group, int op);

/// True if slices of `d` keep the order of every sum over it: `d` is its outermost summed dim, and
/// the sum is a product or is not split into blocks (BlocksOfSum).
bool SlicesKeepOrder(const Smg& smg, DimId d);

/// Checks a choice from an untrusted source. OK if EnumerateChoices could have made it, apart from
/// the lengths of its tiles; else InvalidArgument, naming the part that is wrong. `choice.streamed`
/// must be null or come from StreamGroup, and match `choice.temporal`. A choice that passes may
/// still have no schedule or not fit on chip: see Lower, Verify and Misfit. Pure.
absl::Status CheckChoice(const FusionGroup& group, const Choice& choice, const DeviceSpec& device,
                         bool bitwise);

}  // namespace fusion
