#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/explain_output.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/plan_subject.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

/// A set of nodes that is one kernel in one of the plans, or in both.
struct GroupChange {
  int before = -1;  // groups; -1: it is none
  int after = -1;
  std::string why;
};

struct PlanDiff {
  std::vector<GroupChange> removed;
  std::vector<GroupChange> added;
  std::vector<GroupChange> changed;  // the same nodes, another kernel
  int unchanged = 0;
  bool other_variants = false;

  bool empty() const {
    return removed.empty() && added.empty() && changed.empty() && !other_variants;
  }
};

// Groups that run at every inference, by their nodes.
std::map<std::vector<int>, int> RunGroupsOf(const Plan& plan) {
  std::map<std::vector<int>, int> out;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (plan.groups[g].kind == GroupKind::kPrepare || plan.groups[g].nodes.empty()) continue;
    out[plan.groups[g].nodes] = static_cast<int>(g);
  }
  return out;
}

const PlanGroup& Group(const Plan& plan, int g) { return plan.groups[static_cast<size_t>(g)]; }
const PlanKernel& Kernel(const Plan& plan, int g) {
  return plan.kernels[static_cast<size_t>(Group(plan, g).kernel)];
}

bool Within(const std::vector<int>& part, const std::vector<int>& whole) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

// Why a plan has a group: its gain according to the ledger.
std::string WhyTogether(const Plan& plan, int group) {
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kGroup) continue;
    for (const DecisionPlace& place : d.places) {
      if (place.first_group == group) return d.reason;
    }
  }
  return "";
}

// Why these nodes are not one group of a plan: why two of its groups with some of the nodes are
// separate, or that the nodes are part of a larger group.
std::string WhyApart(const Plan& plan, const std::vector<int>& nodes) {
  for (const PlanGroup& group : plan.groups) {
    if (Within(nodes, group.nodes)) return StrCat("part of ", group.label);
  }
  auto meets = [&](int g) {
    const std::vector<int>& inside = Group(plan, g).nodes;
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](int n) { return std::binary_search(inside.begin(), inside.end(), n); });
  };
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kPair && d.subject != DecisionSubject::kSiblings) continue;
    for (const DecisionPlace& place : d.places) {
      if (!meets(place.first_group) || !meets(place.second_group)) continue;
      return StrCat(d.code, ": ", d.reason);
    }
  }
  return "";
}

std::string WhyChanged(const Plan& before, int b, const Plan& after, int a) {
  const PlanGroup& was = Group(before, b);
  const PlanGroup& is = Group(after, a);
  if (was.tiles != is.tiles) return StrCat("cut ", was.tiles, " -> ", is.tiles);
  if (was.label != is.label) return StrCat("computes ", was.label, " -> ", is.label);
  return "another kernel, cut alike";
}

PlanDiff Compare(const Plan& before, const Plan& after) {
  PlanDiff out;
  std::map<std::vector<int>, int> old_groups = RunGroupsOf(before);
  std::map<std::vector<int>, int> new_groups = RunGroupsOf(after);
  for (const auto& [nodes, b] : old_groups) {
    auto same = new_groups.find(nodes);
    if (same == new_groups.end()) {
      out.removed.push_back({b, -1, WhyApart(after, nodes)});
    } else if (Kernel(before, b).key != Kernel(after, same->second).key) {
      out.changed.push_back({b, same->second, WhyChanged(before, b, after, same->second)});
    } else {
      ++out.unchanged;
    }
  }
  for (const auto& [nodes, a] : new_groups) {
    if (!old_groups.contains(nodes)) out.added.push_back({-1, a, WhyTogether(after, a)});
  }
  out.other_variants = !std::equal(
      before.variants.begin(), before.variants.end(), after.variants.begin(), after.variants.end(),
      [](const PlanVariant& b, const PlanVariant& a) {
        return b.measure == a.measure && b.most == a.most && Compare(*b.plan, *a.plan).empty();
      });
  return out;
}

absl::Status CheckComparable(const PlanExplanation& a, const PlanExplanation& b) {
  if (a.plan.nodes != b.plan.nodes) {
    return InvalidArgument("the plans are of different graphs: ", a.plan.nodes, " and ",
                           b.plan.nodes, " nodes");
  }
  if (a.node_names.empty() || b.node_names.empty()) return absl::OkStatus();
  for (size_t n = 0; n < a.node_names.size(); ++n) {
    if (a.node_names[n] == b.node_names[n]) continue;
    return InvalidArgument("the plans are of different graphs: node #", n, " is ",
                           QuoteShort(a.node_names[n]), " in one and ", QuoteShort(b.node_names[n]),
                           " in the other");
  }
  return absl::OkStatus();
}

std::string ChangeOf(double before, double after) {
  if (before == after) return "same";
  if (before == 0) return "new";
  double part = after / before - 1;
  return StrCat(part < 0 ? "-" : "+", HumanPercent(part < 0 ? -part : part));
}

std::string TotalsText(const Plan& before, const Plan& after) {
  Table table({{""}, {"first", Table::kRight}, {"second", Table::kRight}, {"", Table::kRight}});
  auto row = [&table](std::string_view name, auto a, auto b, auto text) {
    table.Add({std::string(name), text(a), text(b),
               ChangeOf(static_cast<double>(a), static_cast<double>(b))});
  };
  auto plain = [](int64_t n) { return StrCat(n); };
  const PlanTotals& a = before.totals;
  const PlanTotals& b = after.totals;
  row("kernels", a.kernels, b.kernels, plain);
  row("launches", a.launches, b.launches, plain);
  row("traffic", a.activation_bytes, b.activation_bytes, HumanBytes);
  row("weights", a.weight_bytes, b.weight_bytes, HumanBytes);
  row("memory between kernels", before.arena_bytes, after.arena_bytes, HumanBytes);
  row("estimate", a.estimated_us, b.estimated_us, HumanMicroseconds);
  return table.ToString();
}

std::string GroupsText(const PlanExplanation& before, const PlanExplanation& after,
                       const PlanDiff& diff) {
  Table table({{""},
               {"group", Table::kRight},
               {"time", Table::kRight},
               {"kernel", Table::kLeft, /*spare=*/1},
               {"ops", Table::kCut},
               {"why", Table::kCut}});
  auto add = [&table](const char* sign, const Plan& plan, int g, const std::string& why) {
    table.Add({sign, StrCat(g), HumanMicroseconds(Group(plan, g).estimate.time_us),
               Kernel(plan, g).key.ToHex().substr(0, 8), Group(plan, g).label, why});
  };
  for (const GroupChange& c : diff.removed) add("-", before.plan, c.before, c.why);
  for (const GroupChange& c : diff.added) add("+", after.plan, c.after, c.why);
  for (const GroupChange& c : diff.changed) {
    add("~-", before.plan, c.before, "");
    add("~+", after.plan, c.after, c.why);
  }
  return table.ToString();
}

std::string HeadText(std::string_view which, const std::string& word, const PlanExplanation& plan) {
  return StrCat(which, Bold(word), ", plan ", plan.plan_key.ToHex().substr(0, 16), ", ",
                FusionName(plan.plan.fusion), ", ", NumericsName(plan.plan.numerics), ", for ",
                TargetText(plan.plan), "\n");
}

std::string DiffText(const Arguments& arguments, const PlanExplanation& before,
                     const PlanExplanation& after, const PlanDiff& diff) {
  std::string out = StrCat(HeadText("first:  ", arguments.subject, before),
                           HeadText("second: ", arguments.other, after), "\n",
                           TotalsText(before.plan, after.plan), "\n");
  if (diff.other_variants) {
    auto side = [](const char* which, const Plan& plan) {
      return StrCat(which, plan.variants.empty() ? "no variant\n" : VariantsText(plan, {}));
    };
    StrAppend(&out, side("first:  ", before.plan));
    StrAppend(&out, StrCat(side("second: ", after.plan), "\n"));
  }
  if (diff.empty()) return StrCat(out, "the same ", Count(diff.unchanged, "group"), "\n");
  return StrCat(out, GroupsText(before, after, diff), "\n",
                Count(static_cast<int64_t>(diff.removed.size()), "group"), " less, ",
                diff.added.size(), " more, ", diff.changed.size(), " with another kernel, ",
                diff.unchanged, " the same\n");
}

Json SideJson(const PlanExplanation& plan) {
  return {{"plan_key", plan.plan_key.ToHex()},
          {"target", plan.plan.target},
          {"threads", plan.plan.threads},
          {"fusion", FusionName(plan.plan.fusion)},
          {"numerics", NumericsName(plan.plan.numerics)},
          {"totals", TotalsJson(plan.plan.totals)},
          {"variants", VariantsJson(plan.plan, {})},
          {"arena_bytes", plan.plan.arena_bytes}};
}

Json GroupJson(const PlanExplanation& plan, int g) {
  const PlanGroup& group = Group(plan.plan, g);
  return {{"group", g},
          {"ops", group.label},
          {"nodes", group.nodes},
          {"node_names", NodeNames(plan.node_names, group.nodes)},
          {"kernel_key", Kernel(plan.plan, g).key.ToHex()},
          {"tiles", group.tiles},
          {"estimate", EstimateJson(group.estimate)}};
}

Json DiffJson(const PlanExplanation& before, const PlanExplanation& after, const PlanDiff& diff) {
  auto changes = [&](const std::vector<GroupChange>& list) {
    Json out = Json::array();
    for (const GroupChange& c : list) {
      out.push_back({{"first", c.before < 0 ? Json() : GroupJson(before, c.before)},
                     {"second", c.after < 0 ? Json() : GroupJson(after, c.after)},
                     {"why", c.why}});
    }
    return out;
  };
  return {{"identical", diff.empty()},    {"first", SideJson(before)},
          {"second", SideJson(after)},    {"removed", changes(diff.removed)},
          {"added", changes(diff.added)}, {"changed", changes(diff.changed)},
          {"unchanged", diff.unchanged},  {"other_variants", diff.other_variants}};
}

// `client` may be null if no subject needs the service.
absl::StatusOr<ExitCode> DiffWith(const Arguments& arguments, const PlanSubject& first,
                                  const PlanSubject& second, const Client* client,
                                  Progress* progress) {
  progress->Show("planning");
  ASSIGN_OR_RETURN(PlanExplanation before, first.Explain(client, progress));
  ASSIGN_OR_RETURN(PlanExplanation after, second.Explain(client, progress));
  progress->Clear();
  RETURN_IF_ERROR(CheckComparable(before, after));
  PlanDiff diff = Compare(before.plan, after.plan);
  if (arguments.json) {
    PrintJson(DiffJson(before, after, diff));
  } else {
    Print(DiffText(arguments, before, after, diff));
  }
  return kExitOk;
}

}  // namespace

absl::StatusOr<ExitCode> RunDiff(const Arguments& arguments, Progress* progress) {
  // Options of planning do not apply to the other plan if that is not a model.
  Arguments other_arguments = arguments;
  std::error_code ignored;
  if (std::filesystem::exists(arguments.subject, ignored)) other_arguments.model_option.clear();
  ASSIGN_OR_RETURN(PlanSubject second, PlanSubject::Open(arguments.other, other_arguments));
  Arguments first_arguments = arguments;
  if (second.is_model()) first_arguments.model_option.clear();
  ASSIGN_OR_RETURN(PlanSubject first, PlanSubject::Open(arguments.subject, first_arguments));
  if (!first.needs_service() && !second.needs_service()) {
    return DiffWith(arguments, first, second, nullptr, progress);
  }
  return WithService(arguments, progress, [&](const Client& client) {
    return DiffWith(arguments, first, second, &client, progress);
  });
}

}  // namespace fusion
