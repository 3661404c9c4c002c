#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/bundle/report.h"

namespace fusion {

/// Minimum number of hex digits that name a plan on the command line.
inline constexpr size_t kMinKeyDigits = 8;

/// Whether `word` may be a plan key or a prefix of one: 8 to 64 hex digits, of either case.
bool LooksLikeKey(std::string_view word);

/// The key of the one plan in `plans` whose key has the prefix `word`, in either case. NotFound if
/// there is none; InvalidArgument, naming up to 4 of them, if there are several.
absl::StatusOr<Digest> FindPlan(std::string_view word, const std::vector<PlanSummary>& plans);

/// The smallest number of leading digits, at least kMinKeyDigits, by which all keys differ.
size_t UniqueDigits(const std::vector<PlanSummary>& plans);

}  // namespace fusion
