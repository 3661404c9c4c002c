#pragma once

#include <string>
#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

// What choices may say: EnumerateChoices keeps to it, and choices from elsewhere are held to it.

/// Why a dim may not become parallel blocks, "" if it may: it is sliceable, in every output, and
/// blocks do no whole reduction again (they may do their part of a halo); with `forbid_recompute`
/// nothing at all.
std::string WhyNotParallel(const FusionGroup& group, DimId dim, bool forbid_recompute);
/// The dims that may. Ascending.
std::vector<DimId> ParallelDims(const FusionGroup& group, bool forbid_recompute);

/// Which operand of product `op` may give the columns, as ProductChoice::swap, the default first. A
/// constant is packed before the first run, so it makes the columns, or the other operand does if
/// neighbours of it lie next to each other (the pixels of an image); if neither is constant both
/// ways are open.
std::vector<bool> OperandRoles(const FusionGroup& group, int op);

/// True if every sum over `d` has it outermost, so that slices of it follow each other in index
/// order, and none is so long that it is made of blocks.
bool SlicesKeepOrder(const Smg& smg, DimId d);

/// A choice that nobody vouches for: InvalidArgument, naming what of it is wrong, unless it is one
/// that could have been enumerated but for its numbers. `choice.streamed` comes from StreamGroup.
/// What passes may still have no schedule: Lower, Verify and Misfit say so. Pure.
absl::Status CheckChoice(const FusionGroup& group, const Choice& choice, const DeviceSpec& device,
                         bool bitwise);

}  // namespace fusion
