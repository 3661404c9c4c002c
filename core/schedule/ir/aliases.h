#pragma once

#include <utility>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Pairs (output param, input param) that may share memory (Schedule::may_alias). Both have equal
/// type, shape and layout; the input is read in one region only, at the element that this region
/// stores to the output; no element is touched by two blocks. A param is in at most one pair. Pure.
std::vector<std::pair<BufferId, BufferId>> FindAliases(const Schedule& schedule);

}  // namespace fusion
