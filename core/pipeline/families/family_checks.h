#pragma once

#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/graph/shape_trace.h"
#include "core/pipeline/families/family.h"

namespace fusion {

/// What import made of a request where its open dims have some values.
struct CheckedPoint {
  std::vector<int64_t> units;  // values of the symbols divided by their multiples
  Graph graph;                 // canonical
  std::vector<std::string> node_names;
  ShapeTrace trace;
};

/// What the caller can do where the values of these dims (at least one) decide something: for the
/// end of a message.
std::string WayOut(const std::vector<std::string>& names);

/// The ranges of a family in the caller's words: "S=1..9, T=2..64".
std::string ShownRanges(const ShapeFamily& family);

/// OK if every comparison and rounding of shape arithmetic is proven to come out the same for all
/// values of `family.symbols`, from what it did at these points. FailedPrecondition otherwise; it
/// names the node, the dims that decide and what the caller can do. Not needed where the points are
/// all values there are. Pure.
absl::Status CheckDecisions(const ShapeFamily& family, const std::vector<CheckedPoint>& points);

/// OK if the program of `family.members`, a text whose numbers are polynomials of the symbols, is
/// at each point that of the point's graph: the same text, or the same values on random inputs.
/// FailedPrecondition as above. Pure; looks at `cancel` between points.
absl::Status CheckPrograms(const ShapeFamily& family, const ProgramOptions& options,
                           const std::vector<CheckedPoint>& points, const CancelToken* cancel);

}  // namespace fusion
