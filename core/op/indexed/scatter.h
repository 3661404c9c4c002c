#pragma once

#include <string_view>

#include "core/op/op_def.h"

namespace fusion {

/// How ScatterElements and ScatterND combine updates with data: "none" (the last update replaces
/// the element), "add", "mul", "min" or "max".
struct ScatterReduction {
  std::string_view name;
  std::string_view op;      // op that combines two tensors; empty for "none"
  std::string_view monoid;  // combines the updates of one element; empty for "none"
};
/// From attribute "reduction" (absent: none). InvalidArgument for other values.
absl::StatusOr<ScatterReduction> ScatterReductionOf(const OpCall& call);

/// `data` with the elements at `indices` (i64) along `axis` replaced by, or combined with,
/// `updates`. The other extents of the three are equal; those of indices may be 1. Several updates
/// may name one element. The loop body compares each element with all indices along `axis`.
absl::StatusOr<Decomposition::Value> ScatterAlong(Decomposition& d, Decomposition::Value data,
                                                  Decomposition::Value indices,
                                                  Decomposition::Value updates, int axis,
                                                  const ScatterReduction& reduction);

/// Definition of ScatterElements, formerly Scatter: y = data with y[.., indices[i..] at "axis", ..]
/// replaced by updates[i..], or combined with it by "reduction" (add, mul, min, max). Indices need
/// not be constant; negative ones count from the end.
OpDef ScatterElementsOp(std::string name, int min_opset, int max_opset);

}  // namespace fusion
