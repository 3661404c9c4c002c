#include "client/fusionctl/output/explain_output.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>

#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/search_output.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

// Maximum number of nodes of a group named in a line.
constexpr size_t kShown = 8;
// Maximum length of a group's label in running text; tables have the whole label.
constexpr size_t kMaxLabel = 48;

// The nodes in `asked` come first.
std::string NodesText(const PlanExplanation& plan, std::vector<int> nodes,
                      const std::vector<int>& asked) {
  std::stable_partition(nodes.begin(), nodes.end(), [&](int n) {
    return std::find(asked.begin(), asked.end(), n) != asked.end();
  });
  std::vector<int> named(
      nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), kShown)));
  std::string out = StrJoin(named, ", ", [&](int n) { return NodeText(plan, n); });
  if (nodes.size() > kShown) StrAppend(&out, StrCat(" and ", nodes.size() - kShown, " more"));
  return out;
}

std::string GainText(double us) {
  return StrCat(us < 0 ? "-" : "", HumanMicroseconds(std::abs(us)));
}

std::string BytesText(int64_t bytes) {
  return bytes < 0 ? StrCat("-", HumanBytes(-bytes)) : HumanBytes(bytes);
}

int64_t Traffic(const Estimate& e) { return e.activation_bytes + e.recompute_bytes; }

std::string GroupTable(const PlanExplanation& explanation) {
  Table table({{"group", Table::kRight},
               {"nodes", Table::kRight},
               {"one kernel", Table::kRight},
               {"one a node", Table::kRight},
               {"gain", Table::kRight},
               {"traffic saved", Table::kRight},
               {"ops", Table::kCut}});
  // By group, not by entry: repeated layers share one.
  std::map<int, const PlanDecision*> entry_of;
  for (const PlanDecision& d : explanation.plan.decisions) {
    if (d.subject != DecisionSubject::kGroup) continue;
    for (const DecisionPlace& place : d.places) entry_of[place.first_group] = &d;
  }
  for (const auto& [g, entry] : entry_of) {
    const PlanGroup& group = explanation.plan.groups[static_cast<size_t>(g)];
    if (group.kind == GroupKind::kPrepare || !entry->first || !entry->together) continue;
    table.Add({StrCat(g), StrCat(group.nodes.size()), HumanMicroseconds(entry->together->time_us),
               HumanMicroseconds(entry->first->time_us), GainText(entry->benefit_us),
               BytesText(Traffic(*entry->first) - Traffic(*entry->together)), OpsText(group)});
  }
  return table.ToString();
}

// The first groups of an entry, and how many more there are.
std::string PairText(const PlanDecision& d) {
  const DecisionPlace& place = d.places.front();
  return StrCat(place.first_group, d.subject == DecisionSubject::kPair ? " > " : " | ",
                place.second_group, d.times > 1 ? StrCat(" and ", d.times - 1, " more") : "");
}

// Table of pairs or siblings; empty: there are none.
std::string PairTable(const PlanExplanation& explanation, DecisionSubject subject) {
  bool any = false;
  Table table({{"groups"},
               {"why not"},
               {"apart", Table::kRight},
               {"one kernel", Table::kRight},
               {"gain", Table::kRight},
               {"the smallest change, or the reason", Table::kCut}});
  for (const PlanDecision& d : explanation.plan.decisions) {
    if (d.subject != subject) continue;
    any = true;
    double apart = (d.first ? d.first->time_us : 0) + (d.second ? d.second->time_us : 0);
    table.Add({PairText(d), d.code, HumanMicroseconds(apart),
               d.together ? HumanMicroseconds(d.together->time_us) : "-",
               d.together ? GainText(d.benefit_us) : "-",
               d.what_ifs.empty() ? d.reason : d.what_ifs.front().words});
  }
  return any ? table.ToString() : "";
}

std::string Legend(const PlanExplanation& explanation) {
  std::string out;
  for (const RefusalMeaning& code : explanation.codes) {
    StrAppend(&out, StrCat(code.code, ": ", code.meaning, "\n"));
  }
  return out;
}

std::string CandidateText(const PlanExplanation& explanation) {
  std::string out;
  for (const PlanDecision& d : explanation.plan.decisions) {
    if (d.subject != DecisionSubject::kCandidate) continue;
    const DecisionPlace& place = d.places.front();
    StrAppend(&out, StrCat("  ", NodesText(explanation, place.first, {}), " + ",
                           NodesText(explanation, place.second, {}),
                           d.times > 1 ? StrCat(" and ", d.times - 1, " more") : "", ": ",
                           d.code.empty() ? VerdictName(d.verdict) : d.code, ", ", d.reason, "\n"));
  }
  return out;
}

std::string TermsTable(const PlanDecision& d) {
  Table table({{""},
               {"time", Table::kRight},
               {"compute", Table::kRight},
               {"memory", Table::kRight},
               {"launch", Table::kRight, /*spare=*/1},
               {"idle units", Table::kRight, /*spare=*/3},
               {"activations", Table::kRight},
               {"read again", Table::kRight, /*spare=*/2},
               {"weights", Table::kRight},
               {"on chip", Table::kRight}});
  auto add = [&table](std::string_view name, const std::optional<Estimate>& e) {
    if (!e.has_value()) return;
    table.Add({std::string(name), HumanMicroseconds(e->time_us), HumanMicroseconds(e->compute_us),
               HumanMicroseconds(e->memory_us), HumanMicroseconds(e->launch_us),
               HumanMicroseconds(e->tiling_loss_us), HumanBytes(e->activation_bytes),
               HumanBytes(e->recompute_bytes), HumanBytes(e->weight_bytes),
               HumanBytes(e->on_chip_bytes)});
  };
  bool group = d.subject == DecisionSubject::kGroup;
  add(group ? "one a node" : "first", d.first);
  add("second", d.second);
  add("one kernel", d.together);
  return d.first || d.together ? table.ToString() : "";
}

std::string MeaningOf(const PlanExplanation& explanation, const std::string& code) {
  for (const RefusalMeaning& known : explanation.codes) {
    if (known.code == code) return known.meaning;
  }
  return "";
}

std::string EntryText(const PlanExplanation& explanation, const PlanDecision& d,
                      const std::vector<int>& asked) {
  const Plan& plan = explanation.plan;
  const DecisionPlace& place = d.places.front();
  std::string out;
  switch (d.subject) {
    case DecisionSubject::kGroup:
      out = StrCat(Bold(StrCat(GroupText(plan, place.first_group), ": one kernel")), "\n  ",
                   NodesText(explanation, place.first, asked), "\n");
      break;
    case DecisionSubject::kPair:
    case DecisionSubject::kSiblings:
      out = StrCat(Bold(StrCat(GroupText(plan, place.first_group), ", and ",
                               GroupText(plan, place.second_group), ": two kernels",
                               d.subject == DecisionSubject::kPair ? "" : " that read the same")),
                   "\n  first:  ", NodesText(explanation, place.first, asked),
                   "\n  second: ", NodesText(explanation, place.second, asked), "\n");
      break;
    case DecisionSubject::kCandidate:
      out = StrCat(Bold("a candidate of the search"),
                   "\n  first:  ", NodesText(explanation, place.first, asked),
                   "\n  second: ", NodesText(explanation, place.second, asked), "\n");
      break;
  }
  if (d.subject == DecisionSubject::kGroup) {
    const PlanGroup& group = plan.groups[static_cast<size_t>(place.first_group)];
    if (!group.structure.empty()) StrAppend(&out, StrCat("  structure ", group.structure, "\n"));
    if (!group.tiles.empty()) StrAppend(&out, StrCat("  cut ", group.tiles, "\n"));
    for (const std::string& line : group.derivation) {
      StrAppend(&out, StrCat("  derived: ", line, "\n"));
    }
  }
  std::string meaning = MeaningOf(explanation, d.code);
  StrAppend(&out, StrCat("  ", d.code.empty() ? VerdictName(d.verdict) : d.code, ": ", d.reason,
                         meaning.empty() ? "" : StrCat("\n  (", meaning, ")"), "\n"));
  if (!place.between.empty()) {
    StrAppend(&out, StrCat("  between: ",
                           StrJoin(place.between, "; ", [&](int g) { return GroupText(plan, g); }),
                           "\n"));
  }
  for (const WhatIf& what_if : d.what_ifs) StrAppend(&out, StrCat("  ", what_if.words, "\n"));
  return StrCat(out, "\n", TermsTable(d));
}

// Number of edges on the shortest undirected path between two groups; -1: there is none.
int StepsBetween(const Plan& plan, const std::vector<int>& from, const std::vector<int>& to) {
  std::vector<std::vector<int>> beside(plan.groups.size());
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kPair) continue;
    for (const DecisionPlace& place : d.places) {
      beside[static_cast<size_t>(place.first_group)].push_back(place.second_group);
      beside[static_cast<size_t>(place.second_group)].push_back(place.first_group);
    }
  }
  std::vector<int> steps(plan.groups.size(), -1);
  std::queue<int> next;
  for (int g : from) {
    steps[static_cast<size_t>(g)] = 0;
    next.push(g);
  }
  while (!next.empty()) {
    int g = next.front();
    next.pop();
    if (std::find(to.begin(), to.end(), g) != to.end()) return steps[static_cast<size_t>(g)];
    for (int other : beside[static_cast<size_t>(g)]) {
      if (steps[static_cast<size_t>(other)] >= 0) continue;
      steps[static_cast<size_t>(other)] = steps[static_cast<size_t>(g)] + 1;
      next.push(other);
    }
  }
  return -1;
}

std::vector<int> GroupsOf(const Plan& plan, int node) {
  std::vector<int> out;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const std::vector<int>& nodes = plan.groups[g].nodes;
    if (std::binary_search(nodes.begin(), nodes.end(), node)) out.push_back(static_cast<int>(g));
  }
  return out;
}

// The text for nodes without an entry.
std::string NoEntryText(const PlanExplanation& whole, const ExplainFilter& filter) {
  const Plan& plan = whole.plan;
  std::string out;
  std::vector<std::vector<int>> groups;
  for (int node : filter.nodes) {
    groups.push_back(GroupsOf(plan, node));
    StrAppend(&out,
              StrCat(NodeText(whole, node), ": ",
                     groups.back().empty()
                         ? "in no group: it moves nothing, its readers look through it"
                         : StrJoin(groups.back(), "; ", [&](int g) { return GroupText(plan, g); }),
                     "\n"));
  }
  if (groups.size() < 2 || groups[0].empty() || groups[1].empty()) return out;
  int steps = StepsBetween(plan, groups[0], groups[1]);
  return StrCat(out,
                steps < 0
                    ? "no path leads from one to the other"
                    : StrCat("neither reads from the other: ", Count(steps - 1, "group"),
                             steps == 2 ? " lies" : " lie", " between them on the shortest way"),
                "\n");
}

std::string FrontierSection(const Plan& plan) {
  if (plan.frontier.empty()) return "";
  return StrCat(Bold("which plan"), "\n", FrontierText(plan), "\n");
}

Json GroupsJson(const PlanExplanation& explanation) {
  Json out = Json::array();
  for (const PlanGroup& group : explanation.plan.groups) {
    const PlanKernel& kernel = explanation.plan.kernels[static_cast<size_t>(group.kernel)];
    Json json = GroupHeadJson(group);
    json["kernel_key"] = kernel.key.ToHex();
    json["phases"] = kernel.phases;
    json["bound"] = group.bound;
    json["tiles"] = group.tiles;
    json["derivation"] = group.derivation;
    json["structure"] = group.structure;
    json["registered"] = group.registered;
    out.push_back(std::move(json));
  }
  return out;
}

}  // namespace

std::string NodeText(const PlanExplanation& plan, int node) {
  auto at = static_cast<size_t>(node);
  bool named = node >= 0 && at < plan.node_names.size() && !plan.node_names[at].empty();
  return named ? Quote(plan.node_names[at]) : StrCat("#", node);
}

std::string GroupText(const Plan& plan, int group) {
  std::string_view label = plan.groups[static_cast<size_t>(group)].label;
  if (label.size() <= kMaxLabel) return StrCat("group ", group, ", ", label);
  return StrCat("group ", group, ", ", label.substr(0, label.rfind('+', kMaxLabel)), "+...");
}

void DropCandidates(PlanExplanation* explanation) {
  std::erase_if(explanation->plan.decisions,
                [](const PlanDecision& d) { return d.subject == DecisionSubject::kCandidate; });
  std::set<std::string> used;
  for (const PlanDecision& d : explanation->plan.decisions) used.insert(d.code);
  std::erase_if(explanation->codes,
                [&](const RefusalMeaning& code) { return !used.contains(code.code); });
}

std::string OverviewText(const std::string& title, const PlanExplanation& explanation) {
  const Plan& plan = explanation.plan;
  std::string out =
      StrCat(Bold(title), ": ", Count(plan.nodes, "node"), " in ", Count(RunGroups(plan), "group"),
             ", ", Count(plan.totals.kernels, "kernel"), ", for ", TargetText(plan), "\n",
             HumanMicroseconds(plan.totals.estimated_us), " estimated, ",
             HumanMicroseconds(plan.op_by_op.estimated_us), " with one kernel a node", "\nplan ",
             explanation.plan_key.ToHex().substr(0, 16), "\n\n", FrontierSection(plan),
             Bold("why each group is one kernel"), "\n", GroupTable(explanation));
  std::string pairs = PairTable(explanation, DecisionSubject::kPair);
  if (!pairs.empty()) {
    StrAppend(&out,
              StrCat("\n", Bold("why groups that read from each other are two"), "\n", pairs));
  }
  std::string siblings = PairTable(explanation, DecisionSubject::kSiblings);
  if (!siblings.empty()) {
    StrAppend(&out, StrCat("\n", Bold("why groups that read the same are two"), "\n", siblings));
  }
  if (!explanation.codes.empty()) StrAppend(&out, StrCat("\n", Legend(explanation)));
  if (plan.search.level > 0) StrAppend(&out, StrCat("\n", SearchText(plan)));
  std::string candidates = CandidateText(explanation);
  if (!candidates.empty()) {
    StrAppend(&out, StrCat("\n", Bold("what the search weighed"), "\n", candidates));
  }
  StrAppend(&out,
            StrCat("\nthe search weighed ", Count(plan.candidates, "candidate"),
                   candidates.empty() && plan.candidates > 0 ? "; --candidates lists them" : "",
                   "; --why NODE [NODE] tells more\n"));
  return out;
}

std::string DetailText(const PlanExplanation& whole, const PlanExplanation& part,
                       const ExplainFilter& filter) {
  if (part.plan.decisions.empty()) return NoEntryText(whole, filter);
  std::string out = StrJoin(part.plan.decisions, "\n", [&](const PlanDecision& d) {
    return EntryText(part, d, filter.nodes);
  });
  if (!part.plan.search.kernels.empty()) StrAppend(&out, StrCat("\n", SearchText(part.plan)));
  return out;
}

Json ExplanationJson(const PlanExplanation& explanation) {
  const Plan& plan = explanation.plan;
  Json codes = Json::object();
  for (const RefusalMeaning& code : explanation.codes) codes[code.code] = code.meaning;
  Json out = PlanHeadJson(explanation.plan_key, plan);
  out["node_names"] = explanation.node_names;
  out["groups"] = GroupsJson(explanation);
  out["candidates"] = plan.candidates;
  out["decisions"] = DecisionsJson(plan);
  out["codes"] = codes;
  return out;
}

}  // namespace fusion
