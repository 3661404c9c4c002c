#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/bundle/report.h"

namespace fusion {

/// Fewest digits by which people may name a plan.
inline constexpr size_t kMinKeyDigits = 8;

/// True if `word` may be a plan key or the beginning of one: 8 to 64 hex digits, of either case.
bool LooksLikeKey(std::string_view word);

/// The one plan whose key begins with the digits `word`, of either case. NotFound if there is none,
/// InvalidArgument, naming them, if there are several.
absl::StatusOr<Digest> FindPlan(std::string_view word, const std::vector<PlanSummary>& plans);

/// The first digits of each key, as few as tell it from all the others, but kMinKeyDigits at least;
/// as many for each.
size_t UniqueDigits(const std::vector<PlanSummary>& plans);

}  // namespace fusion
