#pragma once

#include <utility>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Pairs (output param, input param) that may share memory: of equal form, the input read in one
/// region only, at the very element that this region stores to the output, and no two blocks meet
/// in an element. Each param is in one pair at most. Pure.
std::vector<std::pair<BufferId, BufferId>> FindAliases(const Schedule& schedule);

}  // namespace fusion
