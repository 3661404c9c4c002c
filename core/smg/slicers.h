#pragma once

#include <string>
#include <vector>

#include "core/smg/halo.h"

namespace fusion {

/// True if a read of an intermediate accesses `dim` at any other coordinate than the reader's own,
/// or at one that ProducerCoordinates cannot give. False for kernel inputs.
bool CrossesAlong(const SmgRead& read, const Smg& smg, DimId dim);

/// Whether a dim may be tiled into parallel blocks, and what that costs.
struct SpatialVerdict {
  bool sliceable = false;
  /// If not sliceable: "reduced by op 3 Softmax", "op 5 reads %7 at other places along d".
  std::string reason;
  /// Ops that every block repeats: they lack the dim but feed ops that have it (a One-to-All along
  /// the dim that starts at an intermediate). Empty: tiling costs no recomputation.
  std::vector<int> recomputed;
  /// Other dims whose range per block follows from the block along the dim (windows, offsets).
  std::vector<Halo> halos;
  /// The length of that range, for each of `halos`.
  std::vector<HaloReach> reach;

  /// True if neighbouring blocks compute the same elements of a halo.
  bool Overlaps() const;
  /// True if some halo is more than a shifted part of its dim (a piece of a concatenation).
  bool Slides() const;
};

/// The spatial slicer. A dim is sliceable iff no All-to-One runs along it, no op reads an
/// intermediate at another coordinate along it, and each block can compute its halos itself: halos
/// do not depend on each other in a cycle, and no op reduces the dim of a halo or has it together
/// with `dim`. A One-to-All along the dim that starts at an intermediate costs recomputation. Pure;
/// any thread.
SpatialVerdict SliceSpatially(const Smg& smg, DimId dim);

/// A verdict as text: "free", "no: reduced by op 3 Softmax", "recomputes op 1", "halo d2 oh + 2" (a
/// tile of oh elements needs oh + 2 elements of d2).
std::string SpatialText(const Smg& smg, DimId dim, const SpatialVerdict& verdict);

}  // namespace fusion
