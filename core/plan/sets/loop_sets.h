#pragma once

#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Both, ascending. They share no op.
std::vector<LoopId> Union(const std::vector<LoopId>& a, const std::vector<LoopId>& b);

/// All of them, ascending. No two share an op.
std::vector<LoopId> UnionOf(const std::vector<std::vector<LoopId>>& sets);

/// True if one of them is a repeat.
bool HasRepeat(const Program& program, const std::vector<LoopId>& loops);

/// True if one of them is opaque.
bool HasOpaque(const Program& program, const std::vector<LoopId>& loops);

/// Canonical positions of the nodes that loop ops come from, ascending, each once.
std::vector<int> NodesOf(const Program& program, const std::vector<LoopId>& loops);

}  // namespace fusion
