#pragma once

#include <string_view>

#include "core/base/threads/cancel.h"
#include "core/bundle/answer.h"
#include "core/cache/store.h"

namespace fusion {

/// Compares a request's key with those of the newest stored plans and returns the nearest one, the
/// request's own plan excepted. Nearest: fewest differing fields, then the least Unlikeness of
/// these. With tenants, only plans of the same tenant are compared. Reads at most kComparedPlans
/// plans, for at most 0.2 s; does not count as a use of them in the store. Any thread.
MissExplanation ExplainMiss(std::string_view full_key, Store& store, const CancelToken& cancel,
                            const Clock& clock);
inline constexpr size_t kComparedPlans = 256;

/// Describes for display how two texts differ: both texts if they are short, else the first
/// differing line and the number of differing lines. Pure.
KeyDifference DescribeDifference(std::string_view field, std::string_view asked,
                                 std::string_view stored);

/// Dissimilarity of two texts: the part of their lines (of one-line texts: words) that the other
/// lacks. 0: equal but for order; 1: nothing in common. Pure.
double Unlikeness(std::string_view a, std::string_view b);

}  // namespace fusion
