#pragma once

#include <cstdint>
#include <string_view>

#include "core/graph/graph.h"
#include "tests/support/stream_cases.h"

namespace fusion {

/// Ways to write a graph otherwise.
enum class Disguise : uint8_t {
  kCommuted,        // operands of commutative ops change places; everything has another name
  kSplit,           // a quotient by a reciprocal, a difference by a negation, composites by steps
  kOtherBase,       // exponentials and logarithms in base 2
  kSwappedAxes,     // products, reductions and softmaxes of the transposed
  kExtraReduction,  // the sum of squares of a value along the dim is returned as well
  kOtherScale,      // another function: quotients by r^1.5 in place of r. The only one that differs
};
inline constexpr Disguise kDisguises[] = {Disguise::kCommuted,       Disguise::kSplit,
                                          Disguise::kOtherBase,      Disguise::kSwappedAxes,
                                          Disguise::kExtraReduction, Disguise::kOtherScale};

std::string_view Name(Disguise disguise);

/// StreamCase::refusal of the case in such a disguise.
std::string_view RefusalOf(const StreamCase& c, Disguise disguise);

/// The graph written that way. `extent`: of the dim that kExtraReduction reduces, which must be
/// that of an axis of some value. Dies if the outcome is no graph.
Graph Disguised(const Graph& graph, Disguise disguise, int64_t extent);

}  // namespace fusion
