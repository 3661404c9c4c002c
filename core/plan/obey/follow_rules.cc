#include "core/plan/obey/follow_rules.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "absl/strings/cord.h"
#include "core/base/threads/job.h"
#include "core/plan/cost/cost_bound.h"
#include "core/plan/rules/rule_effects.h"
#include "core/plan/sets/group_graph.h"
#include "core/plan/sets/loop_sets.h"

namespace fusion {
namespace {

using Sets = std::vector<std::vector<LoopId>>;

// Limit on nodes and rules named in an error.
constexpr size_t kNodesNamed = 6;

// By op: the set that holds it; -1: none.
std::vector<int> SetOfOps(const Program& program, const Sets& sets) {
  std::vector<int> out(program.ops.size(), -1);
  for (size_t s = 0; s < sets.size(); ++s) {
    for (LoopId l : sets[s]) out[static_cast<size_t>(l)] = static_cast<int>(s);
  }
  return out;
}

// The lower bound of the cost of each loop op alone, as a measure of its part in a kernel; equal
// for ops that the evaluator treats as equal.
std::vector<double> Weights(const Program& program, GroupEvaluator* evaluator) {
  CostBound bound(program, evaluator->device());
  std::map<int, double> of_class;
  std::vector<double> out(program.ops.size(), 0);
  for (size_t l = 0; l < program.ops.size(); ++l) {
    if (program.ops[l].IsAlias()) continue;
    auto op = static_cast<LoopId>(l);
    auto [known, fresh] = of_class.try_emplace(evaluator->Key({op})[0], 0);
    if (fresh) known->second = bound.Of({op});
    out[l] = known->second;
  }
  return out;
}

// The cost of a match as one kernel and as several, before any rule applies.
absl::StatusOr<std::optional<MatchTerms>> TermsOf(const std::vector<NodeId>& match,
                                                  const Sets& by_node, const Program& program,
                                                  const Sets& parts_of_node,
                                                  GroupEvaluator* evaluator) {
  std::vector<LoopId> loops;
  MatchTerms terms;
  Estimate apart;
  bool constant = false;
  bool running = false;
  for (NodeId n : match) {
    for (int part : parts_of_node[static_cast<size_t>(n)]) {
      const std::vector<LoopId>& ops = by_node[static_cast<size_t>(part)];
      (evaluator->AreConstant(ops) ? constant : running) = true;
      ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator->Evaluate(ops));
      apart.time_us += verdict->estimate.time_us;
      apart.activation_bytes +=
          verdict->estimate.activation_bytes + verdict->estimate.recompute_bytes;
      ++terms.launches;
      loops = Union(loops, ops);
    }
  }
  bool one = !loops.empty() && !(constant && running) && loops.size() <= kMostOps &&
             TooWide(program, loops).empty();
  if (!one) return std::nullopt;
  ASSIGN_OR_RETURN(const GroupVerdict* together, evaluator->Evaluate(loops));
  if (!together->refusal.empty()) return std::nullopt;
  const Estimate& e = together->estimate;
  terms.time_us = e.time_us;
  terms.apart_us = apart.time_us;
  terms.saved_bytes = apart.activation_bytes - e.activation_bytes - e.recompute_bytes;
  terms.usage_bytes = e.on_chip_bytes;
  return terms;
}

/// Makes one group of what is forced together.
class RuleJoiner {
 public:
  RuleJoiner(const SeenGraph& seen, const Grouping& nodes,
             const std::map<NodeId, std::string>& unfused_nodes, GroupEvaluator* evaluator)
      : seen_(seen),
        program_(evaluator->program()),
        parts_(nodes.groups),
        unfused_nodes_(unfused_nodes),
        evaluator_(*evaluator),
        rules_(evaluator->rules()),
        part_of_(SetOfOps(program_, nodes.groups)),
        root_(nodes.groups.size()) {
    std::iota(root_.begin(), root_.end(), 0);
  }

  absl::StatusOr<Grouping> Run() {
    for (const RuleEffects::Forced& forced : rules_.forced()) {
      for (LoopId l : forced.loops) Join(PartOf(forced.loops[0]), PartOf(l));
    }
    JoinCycles();
    std::map<int, std::vector<size_t>> matches;  // by root
    for (size_t m = 0; m < rules_.forced().size(); ++m) {
      matches[Root(PartOf(rules_.forced()[m].loops[0]))].push_back(m);
    }
    std::map<int, std::vector<LoopId>> joined;  // by root
    for (size_t p = 0; p < parts_.size(); ++p) {
      std::vector<LoopId>& group = joined[Root(static_cast<int>(p))];
      group.insert(group.end(), parts_[p].begin(), parts_[p].end());
    }
    Grouping out;
    for (auto& [root, loops] : joined) {
      std::sort(loops.begin(), loops.end());
      auto of = matches.find(root);
      bool grown = loops.size() > parts_[static_cast<size_t>(root)].size();
      if (grown && of != matches.end()) RETURN_IF_ERROR(Check(loops, of->second));
      out.groups.push_back(std::move(loops));
    }
    out.groups = TopologicalOrder(program_, std::move(out.groups));
    return out;
  }

 private:
  int PartOf(LoopId l) const { return part_of_[static_cast<size_t>(l)]; }
  int Root(int part) {
    int& up = root_[static_cast<size_t>(part)];
    while (up != root_[static_cast<size_t>(up)]) up = root_[static_cast<size_t>(up)];
    return up;
  }
  void Join(int a, int b) {
    a = Root(a);
    b = Root(b);
    root_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

  // Groups that depend on each other in a cycle must be one group: groups on a path from a group
  // back to itself, and groups that wait for each other. Tarjan's strongly connected components.
  void JoinCycles() {
    OpLinks links(program_);
    std::vector<std::vector<int>> writers(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
      int to = Root(static_cast<int>(p));
      for (LoopId l : parts_[p]) {
        for (LoopId w : links.WritersOf(l)) {
          int from = Root(PartOf(w));
          if (from != to) writers[static_cast<size_t>(to)].push_back(from);
        }
      }
    }
    struct Frame {
      int part;
      size_t next;
    };
    constexpr int kDone = std::numeric_limits<int>::max();
    std::vector<int> low(parts_.size(), -1);  // the earliest part reached; -1: not visited
    std::vector<int> open;
    std::vector<Frame> stack;
    std::vector<std::pair<int, int>> cycles;  // parts that are one
    int visited = 0;
    std::vector<int> number(parts_.size(), -1);
    auto at = [](std::vector<int>& list, int i) -> int& { return list[static_cast<size_t>(i)]; };
    for (size_t p = 0; p < parts_.size(); ++p) {
      int start = Root(static_cast<int>(p));
      if (at(number, start) >= 0) continue;
      stack.push_back({start, 0});
      while (!stack.empty()) {
        auto [part, next] = stack.back();
        if (next == 0) {
          at(number, part) = at(low, part) = visited++;
          open.push_back(part);
        }
        if (next < writers[static_cast<size_t>(part)].size()) {
          ++stack.back().next;
          int to = writers[static_cast<size_t>(part)][next];
          if (at(number, to) < 0) {
            stack.push_back({to, 0});
          } else if (at(low, to) != kDone) {
            at(low, part) = std::min(at(low, part), at(number, to));
          }
          continue;
        }
        stack.pop_back();
        int reached = at(low, part);
        if (!stack.empty() && reached != kDone) {
          int& above = at(low, stack.back().part);
          above = std::min(above, reached);
        }
        if (reached != at(number, part)) continue;
        for (int member = -1; member != part;) {
          member = open.back();
          open.pop_back();
          at(low, member) = kDone;
          cycles.emplace_back(part, member);
        }
      }
    }
    // Only after the walk, which uses Root.
    for (const auto& [a, b] : cycles) Join(a, b);
  }

  // Why no kernel can hold these ops.
  absl::StatusOr<Refusal> WhyNot(const std::vector<LoopId>& loops) {
    auto constant = [&](LoopId l) { return evaluator_.IsConstant(program_.op(l).output); };
    if (std::any_of(loops.begin(), loops.end(), constant) !=
        std::all_of(loops.begin(), loops.end(), constant)) {
      return Refuse(RefusalCode::kPrepare, "a part of it is computed from weights alone, once");
    }
    for (LoopId l : loops) {
      auto failed = unfused_nodes_.find(program_.op(l).origin);
      if (failed == unfused_nodes_.end()) continue;
      return Refuse(RefusalCode::kAlone, "a kernel of a node failed: ", failed->second);
    }
    if (loops.size() > kMostOps) {
      return Refuse(RefusalCode::kLarge, loops.size(), " loop ops; one kernel has at most ",
                    kMostOps);
    }
    std::string wide = TooWide(program_, loops);
    if (!wide.empty()) return Refuse(RefusalCode::kWide, wide);
    ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_.Evaluate(loops));
    return verdict->refusal;
  }

  absl::Status Check(const std::vector<LoopId>& group, const std::vector<size_t>& matches) {
    ASSIGN_OR_RETURN(Refusal refusal, WhyNot(group));
    if (refusal.empty()) return absl::OkStatus();
    // If a match alone cannot be one kernel, it is the cause; otherwise all of them together are.
    for (size_t m : matches) {
      if (matches.size() < 2) break;
      ASSIGN_OR_RETURN(Refusal own, WhyNot(rules_.forced()[m].loops));
      if (!own.empty()) return Blame(rules_.forced()[m].loops, {m}, own);
    }
    return Blame(group, matches, refusal);
  }

  absl::Status Blame(const std::vector<LoopId>& group, const std::vector<size_t>& matches,
                     const Refusal& refusal) const {
    std::vector<NodeId> positions;
    auto describe = [&](NodeId node) {
      positions.push_back(node);
      return seen_.request.Describe(node);
    };
    auto nodes_text = [&](const std::vector<NodeId>& nodes) {
      std::string out;
      for (size_t i = 0; i < std::min(nodes.size(), kNodesNamed); ++i) {
        out += StrCat(i == 0 ? "" : ", ",
                      seen_.of_body() ? seen_.graph.node(nodes[i]).def->name : describe(nodes[i]));
      }
      if (nodes.size() > kNodesNamed) out += StrCat(" and ", nodes.size() - kNodesNamed, " more");
      return out;
    };
    std::set<std::string> names;
    std::set<int> rules;
    std::set<NodeId> forced;
    for (size_t m : matches) {
      const RuleEffects::Forced& match = rules_.forced()[m];
      names.insert(Quote(rules_.name(match.rule)));
      rules.insert(match.rule);
      forced.insert(match.nodes.begin(), match.nodes.end());
    }
    std::vector<NodeId> between;
    for (NodeId n : seen_.NodesOf(program_, group)) {
      if (!forced.contains(n)) between.push_back(n);
    }
    bool one = names.size() == 1;
    std::string text = StrCat(one ? "rule " : "rules ", StrJoin(names, ", "),
                              one ? " forces " : " together force ",
                              nodes_text({forced.begin(), forced.end()}), " into one kernel");
    if (seen_.of_body()) text += StrCat(" in the body of ", describe(seen_.repeats));
    if (!between.empty()) text += StrCat(", with what lies between: ", nodes_text(between));
    absl::Status status =
        FailedPrecondition(text, "; there is no such kernel: ", refusal.ToString());
    status.SetPayload(kFailedNode, absl::Cord(StrJoin(positions, " ")));
    status.SetPayload(kFailedRules, absl::Cord(StrJoin(rules, " ")));
    return status;
  }

  const SeenGraph& seen_;
  const Program& program_;
  const Sets& parts_;
  const std::map<NodeId, std::string>& unfused_nodes_;
  GroupEvaluator& evaluator_;
  const RuleEffects& rules_;
  std::vector<int> part_of_;  // by op
  std::vector<int> root_;     // of parts that are one group: the way to the first of them
};

}  // namespace

absl::StatusOr<Grouping> FollowRules(const SeenGraph& seen, const Grouping& nodes,
                                     const Rules& rules,
                                     const std::map<NodeId, std::string>& unfused_nodes,
                                     GroupEvaluator* evaluator) {
  if (rules.empty()) return nodes;
  for (const Rule& rule : rules) RETURN_IF_ERROR(CheckRuleOps(rule));
  const Program& program = evaluator->program();
  const Sets parts_of_node = seen.PartsOfNodes(program, nodes.groups);
  AskKernel ask = [&](const std::vector<NodeId>& match) {
    return TermsOf(match, nodes.groups, program, parts_of_node, evaluator);
  };
  ASSIGN_OR_RETURN(std::vector<RuleMatch> matches,
                   MatchRules(seen.graph, evaluator->device(), rules, ask));
  evaluator->Follow(RuleEffects(seen, program, rules, matches, Weights(program, evaluator)));
  if (evaluator->rules().forced().empty()) return nodes;
  return RuleJoiner(seen, nodes, unfused_nodes, evaluator).Run();
}

absl::StatusOr<std::optional<MatchTerms>> TermsOfMatch(const SeenGraph& seen,
                                                       const std::vector<NodeId>& match,
                                                       const Grouping& by_node,
                                                       GroupEvaluator* evaluator) {
  const Program& program = evaluator->program();
  return TermsOf(match, by_node.groups, program, seen.PartsOfNodes(program, by_node.groups),
                 evaluator);
}

}  // namespace fusion
