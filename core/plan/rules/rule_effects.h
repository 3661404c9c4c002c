#pragma once

#include <string>
#include <vector>

#include "core/base/refusal.h"
#include "core/graph/program/program.h"
#include "core/plan/rules/rule_match.h"
#include "core/plan/rules/seen_graph.h"

namespace fusion {

/// What rules say about sets of loop ops of one program. Sets are ascending. Nodes without loop ops
/// (views) count for nothing. Not thread-safe.
class RuleEffects {
 public:
  /// No rules.
  RuleEffects() = default;
  /// `matches` are of `seen.graph`, and so are the nodes below. `weights`: of each loop op, what it
  /// adds to the time of a kernel, in parts of anything; equal for equal ops.
  RuleEffects(const SeenGraph& seen, const Program& program, const Rules& rules,
              const std::vector<RuleMatch>& matches, std::vector<double> weights);

  /// Nodes that one kernel must hold.
  struct Forced {
    int rule = 0;
    std::vector<NodeId> nodes;  // ascending; each has loop ops
    std::vector<LoopId> loops;  // ascending; all of theirs (SeenGraph::LoopsOfNodes)
  };
  /// By rule.
  const std::vector<Forced>& forced() const { return forced_; }
  bool IsForced(LoopId l) const;

  /// Loop ops of the matches that a rule favours, by rule, each match once.
  const std::vector<std::vector<LoopId>>& favoured() const { return favoured_; }

  /// Why one kernel may not hold these ops; empty if it may. Whoever holds more may not either.
  Refusal Forbids(const std::vector<LoopId>& loops) const;
  /// By what the time of a kernel of these ops is multiplied: a rule's factor counts for the part
  /// of the time that whole matches account for. Else a kernel that is favoured would gain by
  /// whatever else joins it.
  double Factor(const std::vector<LoopId>& loops) const;
  /// No kernel of some of these ops has a smaller factor.
  double LeastFactor(const std::vector<LoopId>& loops) const;

  /// Which of these ops are in whose matches: what Forbids and Factor say of sets of ops of two
  /// sets differs only if this does. Nothing where they say nothing.
  void AppendKey(const std::vector<LoopId>& loops, std::vector<int>* key) const;

  /// What rules did to a kernel of these ops: `rule "a" counts its time as 0.9 of that; rule "b"
  /// forces some of it together`. Empty: nothing.
  std::string About(const std::vector<LoopId>& loops) const;

  const std::string& name(int rule) const { return names_[static_cast<size_t>(rule)]; }

 private:
  // Of a rule that forbids or weighs.
  struct Match {
    int rule = 0;
    bool forbids = false;
    int loops = 0;
    int nodes = 0;
    std::string label;  // its operator types
  };
  struct Membership {
    int match = 0;
    int node = 0;  // of the match
  };
  /// Matches that `loops` concern: of those that forbid all nodes, of others all loop ops;
  /// ascending.
  std::vector<int> Concerned(const std::vector<LoopId>& loops) const;
  /// Calls visit(rule, factor) for each rule that weighs a kernel of these ops, by rule.
  template <typename Visit>
  void VisitFactors(const std::vector<LoopId>& loops, const Visit& visit) const;

  std::vector<std::string> names_;  // by rule
  std::vector<double> factors_;     // by rule
  std::vector<double> weights_;     // by loop op
  std::vector<Match> matches_;
  std::vector<std::vector<Membership>> members_;  // by loop op; empty: no matches
  std::vector<Forced> forced_;
  std::vector<int> forcing_;  // by loop op: a rule that forces it, or -1; empty: none does
  std::vector<std::vector<LoopId>> favoured_;
  mutable std::vector<int> counted_;  // scratch of Concerned, by match; 0 but while it runs
};

/// Payload of an error for which rules are to blame: their positions in PlanOptions::rules, in
/// decimal with spaces between.
inline constexpr char kFailedRules[] = "fusion.v1/failed_rules";

}  // namespace fusion
