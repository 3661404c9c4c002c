#pragma once

#include <string>
#include <vector>

#include "core/smg/halo.h"

namespace fusion {

/// True if a read of an intermediate looks at `dim` anywhere but at the reader's own coordinate.
bool CrossesAlong(const SmgRead& read, const Smg& smg, DimId dim);

/// May a dim be cut into parallel blocks?
struct SpatialVerdict {
  bool sliceable = false;
  /// Why not: "reduced by op 3 Softmax", "op 5 reads %7 at an offset along d".
  std::string reason;
  /// Ops that every block along the dim must do again, because they lack the dim but feed ops that
  /// have it (a One-to-All along the dim that starts at an intermediate). Empty: a free cut.
  std::vector<int> recomputed;
  /// Dims that every block along the dim works on as far as it reaches (windows, offsets).
  std::vector<Halo> halos;
  /// How far that is.
  std::vector<HaloReach> reach;

  /// True if neighbouring blocks compute the same elements of a halo.
  bool Overlaps() const;
  /// True if some halo is more than a part that was moved (a piece of a concatenation).
  bool Slides() const;
};

/// The spatial slicer: a dim may be sliced iff no All-to-One runs along it and what is read of an
/// intermediate across block borders lies along other dims than the one that is cut: each block
/// then computes its halo itself. A One-to-All along the dim that starts at an intermediate costs
/// recomputation. Pure; any thread.
SpatialVerdict SliceSpatially(const Smg& smg, DimId dim);

/// What a verdict says, for people: "free", "no: reduced by op 3 Softmax", "recomputes op 1",
/// "halo d2 oh + 2": a tile of oh elements needs two more of d2.
std::string SpatialText(const Smg& smg, DimId dim, const SpatialVerdict& verdict);

}  // namespace fusion
