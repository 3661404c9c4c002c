#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/plan_keys.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

double AgeSeconds(const PlanSummary& plan) {
  return ToMilliseconds(Clock::Real().UnixTime()) / 1e3 -
         static_cast<double>(plan.created_unix_ms) / 1e3;
}

std::string TrafficSaved(const PlanSummary& plan) {
  auto whole = static_cast<double>(plan.op_by_op.activation_bytes);
  if (whole <= 0) return "-";
  return HumanPercent(1 - static_cast<double>(plan.totals.activation_bytes) / whole);
}

Json ListJson(const std::vector<PlanSummary>& plans, size_t stored) {
  Json out = Json::array();
  for (const PlanSummary& plan : plans) {
    out.push_back({{"plan_key", plan.plan_key.ToHex()},
                   {"model", plan.model_name},
                   {"created_unix_ms", plan.created_unix_ms},
                   {"target", plan.target},
                   {"threads", plan.threads},
                   {"fusion", FusionName(plan.fusion)},
                   {"numerics", NumericsName(plan.numerics)},
                   {"nodes", plan.nodes},
                   {"totals", TotalsJson(plan.totals)},
                   {"op_by_op", TotalsJson(plan.op_by_op)},
                   {"fallbacks", plan.fallbacks},
                   {"bytes", plan.bytes},
                   {"distinct_kernels", plan.distinct_kernels},
                   {"compiled_kernels", plan.compiled_kernels},
                   {"pinned", plan.pinned},
                   {"tenant", plan.tenant}});
  }
  return {{"plans", out}, {"stored", stored}};
}

std::string ListText(const std::vector<PlanSummary>& plans, size_t digits) {
  const bool any_pinned =
      std::any_of(plans.begin(), plans.end(), [](const PlanSummary& plan) { return plan.pinned; });
  Table table({{"plan"},
               {"model", Table::kCut},
               {"age", Table::kRight},
               {"target", Table::kLeft, /*spare=*/5},
               {"threads", Table::kRight, /*spare=*/4},
               {"fusion", Table::kLeft, /*spare=*/2},
               {"nodes", Table::kRight},
               {"kernels", Table::kRight},
               {"compiled", Table::kRight, /*spare=*/1},
               {"traffic saved", Table::kRight},
               {"size", Table::kRight, /*spare=*/3},
               {"pinned", Table::kLeft, /*spare=*/any_pinned ? 0 : 6}});
  for (const PlanSummary& plan : plans) {
    table.Add({plan.plan_key.ToHex().substr(0, digits),
               plan.model_name.empty() ? "-" : plan.model_name, HumanAge(AgeSeconds(plan)),
               plan.target, StrCat(plan.threads), std::string(FusionName(plan.fusion)),
               StrCat(plan.nodes), StrCat(plan.totals.kernels),
               StrCat(plan.compiled_kernels, "/", plan.distinct_kernels), TrafficSaved(plan),
               HumanBytes(plan.bytes), plan.pinned ? "yes" : ""});
  }
  return table.ToString();
}

}  // namespace

absl::StatusOr<ExitCode> RunList(const Arguments& arguments, Progress* progress) {
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    // All plans are needed even for a short list: the digits shown must be unique among all.
    ASSIGN_OR_RETURN(std::vector<PlanSummary> plans, client.ListPlans());
    progress->Clear();
    size_t digits = arguments.full_keys ? std::string::npos : UniqueDigits(plans);
    size_t stored = plans.size();
    if (arguments.limit > 0) plans.resize(std::min(stored, static_cast<size_t>(arguments.limit)));
    if (arguments.json) {
      PrintJson(ListJson(plans, stored));
    } else if (stored == 0) {
      Print("no plans are stored\n");
    } else {
      Print(ListText(plans, digits));
      if (plans.size() < stored) {
        Print(StrCat("\nand ", stored - plans.size(), " older; --limit says how many to show\n"));
      }
    }
    return kExitOk;
  });
}

}  // namespace fusion
