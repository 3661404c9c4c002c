#pragma once

#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// The union, ascending. The sets must be disjoint and ascending.
std::vector<LoopId> Union(const std::vector<LoopId>& a, const std::vector<LoopId>& b);

/// The union of all sets, ascending. The sets must be disjoint.
std::vector<LoopId> UnionOf(const std::vector<std::vector<LoopId>>& sets);

/// True if one of the ops is a repeat.
bool HasRepeat(const Program& program, const std::vector<LoopId>& loops);

/// True if one of the ops is opaque.
bool HasOpaque(const Program& program, const std::vector<LoopId>& loops);

/// Positions in the canonical graph of the nodes that the ops come from; ascending, each once.
std::vector<int> NodesOf(const Program& program, const std::vector<LoopId>& loops);

}  // namespace fusion
