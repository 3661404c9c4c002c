#pragma once

#include <string_view>

#include "core/base/threads/cancel.h"
#include "core/bundle/answer.h"
#include "core/cache/store.h"

namespace fusion {

/// Of the newest stored plans the one that is nearest to a request, other than the request's own:
/// it differs in the fewest fields of its key, of such the least. Plans of other tenants, where
/// these are kept apart, are not looked at. Reads at most kComparedPlans
/// plans, and as many as a fifth of a second allows; that is no use of them. Any thread.
MissExplanation ExplainMiss(std::string_view full_key, Store& store, const CancelToken& cancel,
                            const Clock& clock);
inline constexpr size_t kComparedPlans = 256;

/// How two texts differ, for people: all of them if they are short, else the first line that
/// differs and how many lines do. Pure.
KeyDifference DescribeDifference(std::string_view field, std::string_view asked,
                                 std::string_view stored);

/// How unlike two texts are: the part of their lines (of one line: of its words) that the other
/// lacks. 0: equal but for order; 1: nothing in common. Pure.
double Unlikeness(std::string_view a, std::string_view b);

}  // namespace fusion
