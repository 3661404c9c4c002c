#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/fusion_reply.h"
#include "core/bundle/text.h"

namespace fusion {

// What several commands say about a plan.

std::string_view StateName(KernelState state);  // "pending", "ready", "failed"

/// Groups that run at every inference.
int64_t RunGroups(const Plan& plan);
/// "9 kernels", "1 kernel".
std::string Count(int64_t n, std::string_view noun);
/// Names of the caller for canonical node positions; positions the plan does not have are left out.
std::vector<std::string> NodeNames(const FusionReply& reply, const std::vector<int>& nodes);
/// The same of the names themselves.
std::vector<std::string> NodeNames(const std::vector<std::string>& names,
                                   const std::vector<int>& nodes);

/// Everything in a reply but the texts.
nlohmann::ordered_json ReplyJson(const FusionReply& reply);
/// What every command says of a plan: its key, what it is for, its totals, its frontier.
nlohmann::ordered_json PlanHeadJson(const Digest& key, const Plan& plan);
/// What every command says of a group.
nlohmann::ordered_json GroupHeadJson(const PlanGroup& group);
nlohmann::ordered_json EstimateJson(const Estimate& estimate);
nlohmann::ordered_json DecisionsJson(const Plan& plan);
/// What a group computes: its op types, behind the name of the registered kernel if it is one.
std::string OpsText(const PlanGroup& group);
nlohmann::ordered_json TotalsJson(const PlanTotals& totals);
nlohmann::ordered_json FrontierJson(const Plan& plan);
/// The table of Plan::frontier, and what decided; empty if the plan does not tell.
std::string FrontierText(const Plan& plan);
/// What lies in one piece of memory, in a line; empty if nothing does.
std::string SharedText(const Plan& plan, const Binding& binding);
/// Which inputs and outputs do not lie dense: a line for people; empty if all do.
std::string StridesText(const Plan& plan, const Binding& binding);
/// The loops of the plan, a line each; none: nothing.
std::string LoopsText(const Plan& plan, const Binding& binding);
/// Which dims the plan leaves open, and what that costs: lines for people; empty if it leaves none.
std::string OpenDimsText(const Plan& plan, const Binding& binding);
/// The variants of the plan, a line each; none: nothing. Without names in `binding` symbols are
/// called by number.
std::string VariantsText(const Plan& plan, const Binding& binding);
nlohmann::ordered_json VariantsJson(const Plan& plan, const Binding& binding);
nlohmann::ordered_json KernelsJson(const FusionReply& reply);

/// The plan with every tensor and launch, for people.
std::string DescribePlan(const FusionReply& reply);

}  // namespace fusion
