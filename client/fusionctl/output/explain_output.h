#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/bundle/explanation.h"

namespace fusion {

// A decision ledger for people and programs.

/// The caller's name for a node in quotes, or "#12" where it is not known.
std::string NodeText(const PlanExplanation& plan, int node);
/// 'group 3, MatMul+Add'.
std::string GroupText(const Plan& plan, int group);

/// Leaves the entries that are about the plan itself.
void DropCandidates(PlanExplanation* explanation);

/// Every group and what it gains, every pair and what keeps it apart, one a line.
std::string OverviewText(const std::string& title, const PlanExplanation& explanation);

/// The entries of `part`, the answer to `filter`, with their terms and what would turn them. Where
/// there is none it is said what lies between the nodes that were asked about. `whole`: the plan
/// with all of its entries.
std::string DetailText(const PlanExplanation& whole, const PlanExplanation& part,
                       const ExplainFilter& filter);

nlohmann::ordered_json ExplanationJson(const PlanExplanation& explanation);

}  // namespace fusion
