#pragma once

#include <map>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Selects of a region that choose by where they are, such as those of masks: in windows where each
/// of `everywhere` is at least 0 at every point they all give the same argument.
struct FullTiles {
  std::map<int, int> kept;            // by result of a select: 1 or 2, the argument it gives
  std::vector<IndexExpr> everywhere;  // without repeats; none: there is no such select
};

/// The windows that matter most: those where no select gives a constant, or of two constants the
/// smaller one, as masks do where they hide something. Exact: conditions that compare sums of
/// coordinates, in types that hold all of them. Pure.
FullTiles FindFullTiles(const EachStmt& each, const std::vector<ScheduleDim>& dims);

}  // namespace fusion
