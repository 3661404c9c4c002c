#pragma once

#include <string>
#include <vector>

#include "core/bundle/rules/rules.h"

namespace fusion {

/// An error of planning, in the words of the caller: node names instead of the planner's positions
/// (kFailedNode), and the names of the request's rules that it is about (kBlamedRules).
/// `nodes`: the caller's node names by position. `rules`: all rules of the plan, those of the
/// service first, then `of_request`. If it is about rules of the service only, it becomes Internal,
/// because the request is not at fault.
absl::Status InCallersWords(const absl::Status& failed, const std::vector<std::string>& nodes,
                            const Rules& rules, const Rules& of_request);

}  // namespace fusion
