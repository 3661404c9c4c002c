#pragma once

#include <string_view>

#include "core/op/op_def.h"

namespace fusion {

/// How ScatterElements and ScatterND combine updates with data: "none" (the last one replaces it),
/// "add", "mul", "min" or "max".
struct ScatterReduction {
  std::string_view name;
  std::string_view op;      // of two tensors; empty: none
  std::string_view monoid;  // of updates of one element
};
/// From the attribute "reduction" (absent: none), or InvalidArgument.
absl::StatusOr<ScatterReduction> ScatterReductionOf(const OpCall& call);

/// data with the elements that `indices` (i64) name along `axis` replaced by, or combined with,
/// those of `updates`; extents beside `axis` are equal, or 1 for indices. Any number of updates may
/// name one element; each element looks at all indices along `axis`.
absl::StatusOr<Decomposition::Value> ScatterAlong(Decomposition& d, Decomposition::Value data,
                                                  Decomposition::Value indices,
                                                  Decomposition::Value updates, int axis,
                                                  const ScatterReduction& reduction);

/// ScatterElements, and what was called Scatter: y = data with y[.., indices[i..] at `axis`, ..]
/// replaced by updates[i..], or with `reduction` add, mul, min or max combined with it. Indices may
/// be computed; negative ones count from the end.
OpDef ScatterElementsOp(std::string name, int min_opset, int max_opset);

}  // namespace fusion
