#pragma once

#include <map>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// The selects of a region whose condition depends on coordinates only, such as those of masks. In
/// windows where each of `everywhere` is at least 0 at every point, each of these selects gives the
/// same argument everywhere.
struct FullTiles {
  std::map<int, int> kept;            // by result of a select: 1 or 2, the argument that it gives
  std::vector<IndexExpr> everywhere;  // each once; empty: no such select
};

/// Finds the most frequent case, full tiles: no select gives its constant argument, or of two
/// constant arguments the smaller one (masks do that where they hide something). Exact: only
/// conditions that compare sums of coordinates, in types that represent all of them. Pure.
FullTiles FindFullTiles(const EachStmt& each, const std::vector<ScheduleDim>& dims);

}  // namespace fusion
