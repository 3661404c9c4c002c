#include "core/plan/rules/rule_effects.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fusion {
namespace {

// Limit on operator types named in a refusal.
constexpr size_t kNodesInLabel = 8;

}  // namespace

RuleEffects::RuleEffects(const SeenGraph& seen, const Program& program, const Rules& rules,
                         const std::vector<RuleMatch>& matches, std::vector<double> weights)
    : weights_(std::move(weights)) {
  for (const Rule& rule : rules) {
    names_.push_back(rule.name);
    factors_.push_back(rule.factor);
  }
  if (matches.empty()) return;
  const std::vector<std::vector<LoopId>> loops_of = seen.LoopsOfNodes(program);
  for (const RuleMatch& found : matches) {
    Forced all{.rule = found.rule, .nodes = {}, .loops = {}};
    for (NodeId n : found.nodes) {
      const std::vector<LoopId>& loops = loops_of[static_cast<size_t>(n)];
      if (loops.empty()) continue;
      all.nodes.push_back(n);
      all.loops.insert(all.loops.end(), loops.begin(), loops.end());
    }
    std::sort(all.loops.begin(), all.loops.end());
    RuleAction action = rules[static_cast<size_t>(found.rule)].action;
    bool forbids = action == RuleAction::kForbid;
    // A single node is always one kernel.
    if (all.loops.empty() || (forbids && all.nodes.size() < 2)) continue;
    if (action == RuleAction::kForce) {
      forcing_.resize(program.ops.size(), -1);
      for (LoopId l : all.loops) forcing_[static_cast<size_t>(l)] = found.rule;
      forced_.push_back(std::move(all));
      continue;
    }
    std::string label;
    for (size_t i = 0; i < std::min(all.nodes.size(), kNodesInLabel); ++i) {
      label += StrCat(i == 0 ? "" : "+", seen.graph.node(all.nodes[i]).def->name);
    }
    if (all.nodes.size() > kNodesInLabel) label += "+...";
    auto match = static_cast<int>(matches_.size());
    matches_.push_back({.rule = found.rule,
                        .forbids = forbids,
                        .loops = static_cast<int>(all.loops.size()),
                        .nodes = static_cast<int>(all.nodes.size()),
                        .label = std::move(label)});
    members_.resize(program.ops.size());
    for (size_t n = 0; n < all.nodes.size(); ++n) {
      for (LoopId l : loops_of[static_cast<size_t>(all.nodes[n])]) {
        members_[static_cast<size_t>(l)].push_back({match, static_cast<int>(n)});
      }
    }
    if (!forbids && factors_[static_cast<size_t>(found.rule)] < 1) {
      favoured_.push_back(std::move(all.loops));
    }
  }
  counted_.assign(matches_.size(), 0);
}

bool RuleEffects::IsForced(LoopId l) const {
  return !forcing_.empty() && forcing_[static_cast<size_t>(l)] >= 0;
}

std::vector<int> RuleEffects::Concerned(const std::vector<LoopId>& loops) const {
  std::vector<int> out;
  if (members_.empty()) return out;
  std::vector<int> touched;
  std::set<std::pair<int, int>> seen;  // nodes of matches that forbid
  for (LoopId l : loops) {
    for (const Membership& in : members_[static_cast<size_t>(l)]) {
      if (matches_[static_cast<size_t>(in.match)].forbids &&
          !seen.insert({in.match, in.node}).second) {
        continue;
      }
      if (++counted_[static_cast<size_t>(in.match)] == 1) touched.push_back(in.match);
    }
  }
  for (int m : touched) {
    const Match& match = matches_[static_cast<size_t>(m)];
    int& count = counted_[static_cast<size_t>(m)];
    if (count == (match.forbids ? match.nodes : match.loops)) out.push_back(m);
    count = 0;
  }
  std::sort(out.begin(), out.end());
  return out;
}

Refusal RuleEffects::Forbids(const std::vector<LoopId>& loops) const {
  for (int m : Concerned(loops)) {
    const Match& match = matches_[static_cast<size_t>(m)];
    if (!match.forbids) continue;
    return Refuse(RefusalCode::kRule, "rule ", Quote(name(match.rule)),
                  " forbids one kernel with something of all ", match.nodes, " nodes of ",
                  match.label);
  }
  return {};
}

template <typename Visit>
void RuleEffects::VisitFactors(const std::vector<LoopId>& loops, const Visit& visit) const {
  std::vector<int> concerned = Concerned(loops);
  std::erase_if(concerned, [&](int m) { return matches_[static_cast<size_t>(m)].forbids; });
  if (concerned.empty()) return;
  double all = 0;
  std::map<int, double> matched;  // weight of the ops in whole matches, by rule
  for (LoopId l : loops) {
    const double weight = weights_[static_cast<size_t>(l)];
    all += weight;
    std::set<int> rules;  // each counts an op once
    for (const Membership& in : members_[static_cast<size_t>(l)]) {
      if (!std::binary_search(concerned.begin(), concerned.end(), in.match)) continue;
      rules.insert(matches_[static_cast<size_t>(in.match)].rule);
    }
    for (int rule : rules) matched[rule] += weight;
  }
  for (const auto& [rule, weight] : matched) {
    double part = all > 0 ? weight / all : 1;
    visit(rule, 1 - (1 - factors_[static_cast<size_t>(rule)]) * part);
  }
}

double RuleEffects::Factor(const std::vector<LoopId>& loops) const {
  double product = 1;
  VisitFactors(loops, [&](int, double factor) { product *= factor; });
  return product;
}

double RuleEffects::LeastFactor(const std::vector<LoopId>& loops) const {
  double product = 1;
  VisitFactors(loops, [&](int rule, double) {
    product *= std::min(factors_[static_cast<size_t>(rule)], 1.0);
  });
  return product;
}

void RuleEffects::AppendKey(const std::vector<LoopId>& loops, std::vector<int>* key) const {
  std::vector<int> concerned = Concerned(loops);
  if (concerned.empty()) return;
  std::map<int, int> number;  // of a match, by first appearance
  for (size_t i = 0; i < loops.size(); ++i) {
    for (const Membership& in : members_[static_cast<size_t>(loops[i])]) {
      if (!std::binary_search(concerned.begin(), concerned.end(), in.match)) continue;
      int local = number.try_emplace(in.match, static_cast<int>(number.size())).first->second;
      const Match& match = matches_[static_cast<size_t>(in.match)];
      for (int part : {static_cast<int>(i), match.rule, local, in.node}) key->push_back(part);
    }
  }
}

std::string RuleEffects::About(const std::vector<LoopId>& loops) const {
  std::vector<std::string> words;
  VisitFactors(loops, [&](int rule, double factor) {
    words.push_back(StrCat("rule ", Quote(name(rule)), " counts its time as ",
                           std::round(factor * 1000) / 1000, " of that"));
  });
  std::set<int> forcing;
  for (LoopId l : loops) {
    if (IsForced(l)) forcing.insert(forcing_[static_cast<size_t>(l)]);
  }
  for (int rule : forcing) {
    words.push_back(StrCat("rule ", Quote(name(rule)), " keeps nodes of it together"));
  }
  return StrJoin(words, "; ");
}

}  // namespace fusion
