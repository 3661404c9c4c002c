#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace fusion {

/// A graph to plan, chosen by `seed`: 6 to 10 ops that are one loop op each (element-wise with and
/// without broadcast, reductions along either dim, products with weights and with each other), two
/// or more of them reductions or products, and a value that several ops read. Extents from one to
/// thousands, so that launches bound some graphs, memory or arithmetic others. Not meant to be run.
/// Same seed, same graph.
Graph PlanCorpusGraph(uint64_t seed);

}  // namespace fusion
