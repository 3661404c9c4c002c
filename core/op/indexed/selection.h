#pragma once

#include "core/op/op_def.h"

namespace fusion {

/// What the ops are made of whose outputs have as many elements as the values of an input say
/// (OpDef::counted).

/// The elements of a list that a run chooses.
struct Selection {
  /// i64[n]: where they are, ascending; then the last of them again, so that what is made of these
  /// is as valid as that. If there are none: some place.
  Decomposition::Value places = 0;
  /// i64: how many there are.
  Decomposition::Value count = 0;
};

/// Those at which `chosen`, bool[n], is true.
absl::StatusOr<Selection> ChosenElements(Decomposition& d, Decomposition::Value chosen);

/// x as a list.
absl::StatusOr<Decomposition::Value> Flattened(Decomposition& d, Decomposition::Value x);

/// The coordinates along each dim of elements that are named by their place in row-major order, as
/// a new dim of extent `dims.size()` (at least 1) at `axis`.
absl::StatusOr<Decomposition::Value> CoordinatesOf(Decomposition& d, Decomposition::Value places,
                                                   const Dims& dims, int64_t axis);

}  // namespace fusion
