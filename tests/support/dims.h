#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/check.h"
#include "core/base/text/text.h"
#include "core/smg/smg.h"

namespace fusion {

/// The dim that walks the axis with `extent` places. Where ops walk the axis one after the other,
/// since the later ones need all that the earlier ones made, it is a dim for each: the last of
/// them. Dies if there is none, or if an op has two: the extent does not say which then.
inline DimId DimOf(const Smg& smg, int64_t extent) {
  DimId found = -1;
  for (DimId d = 0; d < static_cast<DimId>(smg.dims.size()); ++d) {
    if (smg.dim(d).extent == extent) found = d;
  }
  FUSION_CHECK(found >= 0, StrCat("no dim has ", extent, " places"));
  for (const SmgOp& op : smg.ops) {
    auto of_extent = std::count_if(op.dims.begin(), op.dims.end(),
                                   [&](DimId d) { return smg.dim(d).extent == extent; });
    FUSION_CHECK(of_extent < 2, StrCat(op.label, " has ", of_extent, " dims of ", extent));
  }
  return found;
}

}  // namespace fusion
