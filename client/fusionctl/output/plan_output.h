#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/fusion_reply.h"
#include "core/base/text/human_numbers.h"
#include "core/bundle/text.h"

namespace fusion {

// Text and JSON about plans, shared by several commands.

std::string_view StateName(KernelState state);  // "pending", "ready", "failed"

/// Number of groups that run in every inference (all but prepare).
int64_t RunGroups(const Plan& plan);
/// The model's names of the nodes at these canonical positions; unknown positions are left out.
std::vector<std::string> NodeNames(const FusionReply& reply, const std::vector<int>& nodes);
/// The same with the names in canonical order.
std::vector<std::string> NodeNames(const std::vector<std::string>& names,
                                   const std::vector<int>& nodes);

/// A reply without its dumps.
nlohmann::ordered_json ReplyJson(const FusionReply& reply);
/// The fields of a plan that every command prints: key, target, totals, frontier.
nlohmann::ordered_json PlanHeadJson(const Digest& key, const Plan& plan);
/// The fields of a group that every command prints.
nlohmann::ordered_json GroupHeadJson(const PlanGroup& group);
nlohmann::ordered_json EstimateJson(const Estimate& estimate);
nlohmann::ordered_json DecisionsJson(const Plan& plan);
/// The op types of a group, after the name of its registered kernel if it has one.
std::string OpsText(const PlanGroup& group);
nlohmann::ordered_json TotalsJson(const PlanTotals& totals);
nlohmann::ordered_json FrontierJson(const Plan& plan);
/// The table of Plan::frontier and the reason for the choice; empty if the plan has no frontier.
std::string FrontierText(const Plan& plan);
/// A line about the plan's shared buffers; empty if it has none.
std::string SharedText(const Plan& plan, const Binding& binding);
/// A line about inputs and outputs that are not dense; empty if all are.
std::string StridesText(const Plan& plan, const Binding& binding);
/// The loops of the plan, one per line; empty if it has none.
std::string LoopsText(const Plan& plan, const Binding& binding);
/// Lines about the dims that the plan leaves open, with their cost; empty if it leaves none.
std::string OpenDimsText(const Plan& plan, const Binding& binding);
/// The variants of the plan, one per line; empty if it has none. Symbols without a name in
/// `binding` are numbered.
std::string VariantsText(const Plan& plan, const Binding& binding);
nlohmann::ordered_json VariantsJson(const Plan& plan, const Binding& binding);
nlohmann::ordered_json KernelsJson(const FusionReply& reply);

/// The whole plan as text, with every tensor and launch.
std::string DescribePlan(const FusionReply& reply);

}  // namespace fusion
