#pragma once

#include <string>
#include <vector>

#include "core/graph/program.h"

namespace fusion {

/// Both, ascending. They share no op.
std::vector<LoopId> Union(const std::vector<LoopId>& a, const std::vector<LoopId>& b);

/// Canonical positions of the nodes that loop ops come from, ascending, each once.
std::vector<int> NodesOf(const Program& program, const std::vector<LoopId>& loops);

/// "12.34 us".
std::string MicrosecondsText(double us);

/// A change of groups must gain this much, in microseconds: less is noise of the model.
inline constexpr double kMinGain = 0.05;

}  // namespace fusion
