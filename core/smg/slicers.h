#pragma once

#include <string>
#include <vector>

#include "core/smg/smg.h"

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
};

/// The spatial slicer: a dim may be sliced iff no All-to-One runs along it and nothing in the
/// kernel reads an intermediate across block borders; a One-to-All along it that starts at an
/// intermediate costs recomputation. Pure; any thread.
SpatialVerdict SliceSpatially(const Smg& smg, DimId dim);

}  // namespace fusion
