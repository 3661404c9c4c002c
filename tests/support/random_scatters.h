#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace fusion {

/// A graph of gathers and scatters whose indices a run brings, some of them known: ScatterElements
/// along any axis and ScatterND of one to three columns, with every reduction; updates that are
/// gathered, multiplied or made by a product first, and what is made of the result behind. Some
/// indices count from the end, many name one place, a few name none. Same seed, same graph.
Graph RandomScatterGraph(uint64_t seed);

}  // namespace fusion
