#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/bundle/explanation.h"

namespace fusion {

// A plan's decision ledger as text and JSON.

/// The model's name of a node in quotes, or "#12" if it is unknown.
std::string NodeText(const PlanExplanation& plan, int node);
/// 'group 3, MatMul+Add'.
std::string GroupText(const Plan& plan, int group);

/// Removes the entries about candidates of the search.
void DropCandidates(PlanExplanation* explanation);

/// Tables of all groups with their gains, and of all pairs with the reasons why they are separate.
/// `title`: the headline.
std::string OverviewText(const std::string& title, const PlanExplanation& explanation);

/// The entries of `part` (the explanation for `filter`) with their terms and what would reverse
/// them. If there is none, tells how the requested nodes are related. `whole`: the explanation with
/// all entries.
std::string DetailText(const PlanExplanation& whole, const PlanExplanation& part,
                       const ExplainFilter& filter);

nlohmann::ordered_json ExplanationJson(const PlanExplanation& explanation);

}  // namespace fusion
