#pragma once

#include "core/op/op_def.h"

namespace fusion {

/// Common steps of ops whose output extents depend on input values (OpDef::counted).

/// Elements of a list of n elements that are selected at run time.
struct Selection {
  /// i64[n]: their positions, ascending. The rest repeats the last position, or is 0 if nothing is
  /// selected, so that every entry is a valid position.
  Decomposition::Value places = 0;
  /// i64 scalar: the number of selected elements.
  Decomposition::Value count = 0;
};

/// The elements for which `chosen`, bool[n], is true.
absl::StatusOr<Selection> ChosenElements(Decomposition& d, Decomposition::Value chosen);

/// x as a list (rank 1), row-major.
absl::StatusOr<Decomposition::Value> Flattened(Decomposition& d, Decomposition::Value x);

/// Converts row-major positions in a tensor of `dims` (at least one dim) to coordinates. The result
/// has a new dim at `axis`, of extent `dims.size()`.
absl::StatusOr<Decomposition::Value> CoordinatesOf(Decomposition& d, Decomposition::Value places,
                                                   const Dims& dims, int64_t axis);

}  // namespace fusion
