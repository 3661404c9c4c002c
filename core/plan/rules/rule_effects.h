#pragma once

#include <string>
#include <vector>

#include "core/base/refusal.h"
#include "core/graph/program/program.h"
#include "core/plan/rules/rule_match.h"
#include "core/plan/rules/seen_graph.h"

namespace fusion {

/// The effect of matched rules on sets of loop ops of one program. All sets are ascending. Nodes
/// without loop ops (views) are ignored. Not thread-safe, const functions included.
class RuleEffects {
 public:
  /// No rules.
  RuleEffects() = default;
  /// `matches` and all node ids below refer to `seen.graph`. `weights`: by loop op, its
  /// contribution to the time of a kernel, in any unit; equal for equal ops.
  RuleEffects(const SeenGraph& seen, const Program& program, const Rules& rules,
              const std::vector<RuleMatch>& matches, std::vector<double> weights);

  /// A set of nodes that one kernel must hold.
  struct Forced {
    int rule = 0;
    std::vector<NodeId> nodes;  // ascending; each has loop ops
    std::vector<LoopId> loops;  // ascending; all ops of `nodes` (SeenGraph::LoopsOfNodes)
  };
  /// In the order of rules.
  const std::vector<Forced>& forced() const { return forced_; }
  bool IsForced(LoopId l) const;

  /// For each match of a rule with a factor below 1: its loop ops.
  const std::vector<std::vector<LoopId>>& favoured() const { return favoured_; }

  /// Why a rule forbids one kernel with these ops; empty if none does. A forbidden set makes every
  /// superset forbidden.
  Refusal Forbids(const std::vector<LoopId>& loops) const;
  /// The factor that rules put on the time of a kernel of these ops. The factor of a rule is
  /// weighted by the part of the time that whole matches account for. Without that, any op that
  /// joins a favoured kernel would seem to gain.
  double Factor(const std::vector<LoopId>& loops) const;
  /// A lower bound of Factor for every non-empty subset of these ops.
  double LeastFactor(const std::vector<LoopId>& loops) const;

  /// Appends to `key` which of these ops belong to which matches. For equal sets of ops, Forbids
  /// and Factor differ only if this differs. Appends nothing if no match applies.
  void AppendKey(const std::vector<LoopId>& loops, std::vector<int>* key) const;

  /// The effect of rules on a kernel of these ops, as text: `rule "a" counts its time as 0.9 of
  /// that; rule "b" keeps nodes of it together`. Empty: none.
  std::string About(const std::vector<LoopId>& loops) const;

  const std::string& name(int rule) const { return names_[static_cast<size_t>(rule)]; }

 private:
  // A match of a rule that forbids or weighs.
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
  /// Matches that apply to `loops`, ascending. A match that forbids applies if `loops` has an op of
  /// each of its nodes; any other one if `loops` has all its ops.
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
  std::vector<int> forcing_;  // by loop op: a rule that forces it, or -1; empty: no rule does
  std::vector<std::vector<LoopId>> favoured_;
  mutable std::vector<int> counted_;  // scratch of Concerned, by match; 0 outside of it
};

/// Payload of an error that rules cause: their positions in PlanOptions::rules, decimal, separated
/// by spaces.
inline constexpr char kFailedRules[] = "fusion.v1/failed_rules";

}  // namespace fusion
