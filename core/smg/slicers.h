#pragma once

#include <string>
#include <vector>

#include "core/smg/smg.h"

namespace fusion {

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

/// How a dim may be streamed inside a block.
struct TemporalVerdict {
  enum Kind : uint8_t {
    kStream,           // no reduction along it
    kSimpleAggregate,  // reductions along it that do not depend on each other: partial results
                       // accumulate
    kRefused,
  };
  Kind kind = kRefused;
  /// Refusal code and words: "dependent-reduction: op 4 ReduceSum uses op 2 ReduceMax, both along
  /// l".
  std::string reason;
  /// Ops inside the loop over the dim (all that have it), ascending; the rest run before or after
  /// it.
  std::vector<int> inside;
};

/// The temporal slicer. Dependent reductions along one dim are refused (their update-then-aggregate
/// form is not derived here), as is any op that has the dim and needs a finished reduction along
/// it. Pure; any thread.
TemporalVerdict SliceTemporally(const Smg& smg, DimId dim);

}  // namespace fusion
