#pragma once

#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/graph/shape_trace.h"
#include "core/pipeline/families/family.h"

namespace fusion {

/// The imported graph of a request for some values of its open dims.
struct CheckedPoint {
  std::vector<int64_t> units;  // values of the symbols divided by their multiples
  Graph graph;                 // canonical
  std::vector<std::string> node_names;
  ShapeTrace trace;
};

/// The end of an error message: what the caller can do if the values of these dims (at least one)
/// decide something.
std::string WayOut(const std::vector<std::string>& names);

/// The ranges of a family in the caller's words: "S=1..9, T=2..64".
std::string ShownRanges(const ShapeFamily& family);

/// OK if every comparison and rounding of shape arithmetic is proven, from the traces of `points`,
/// to have the same result for all values of `family.symbols`. Otherwise FailedPrecondition with
/// the node, the deciding dims and what the caller can do. Not needed if `points` are all values.
/// Pure.
absl::Status CheckDecisions(const ShapeFamily& family, const std::vector<CheckedPoint>& points);

/// OK if the program of `family.members`, a text whose numbers are polynomials of the symbols,
/// matches the program of each point's graph: equal text, or equal values on random inputs.
/// Otherwise FailedPrecondition as in CheckDecisions. Pure; checks `cancel` between points.
absl::Status CheckPrograms(const ShapeFamily& family, const ProgramOptions& options,
                           const std::vector<CheckedPoint>& points, const CancelToken* cancel);

}  // namespace fusion
