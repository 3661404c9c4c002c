#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/bundle/answer.h"

namespace fusion {

/// Selects ledger entries. Default: all. `nodes` and `group` exclude each other.
struct ExplainFilter {
  /// At most two canonical node positions. One: entries with the node on any side. Two: entries
  /// with one of the nodes on each side, or with both in one group.
  std::vector<int> nodes;
  /// A position in Plan::groups: entries about the group, and candidates within it. -1: any.
  int group = -1;
};

/// The general meaning of a refusal code.
struct RefusalMeaning {
  std::string code;
  std::string meaning;
};

/// A plan's decision ledger with what is needed to display it.
struct PlanExplanation {
  /// The plan without tensors, constants, launches, loops, inputs, outputs and weights.
  /// DecisionPlace::first and second are filled in for all subjects.
  Plan plan;
  Digest plan_key;
  std::vector<std::string> node_names;  // by canonical node position; empty: unknown
  std::optional<CacheOutcome> cache;    // not set: the plan was requested by key
  std::vector<RefusalMeaning> codes;    // codes in the decisions, in alphabetical order
};

/// The explanation of `plan`, restricted to the decisions that `filter` selects. Fills in `plan`
/// and `codes`; the caller sets plan_key, node_names and cache. InvalidArgument, naming the field,
/// for a position out of range, more than two nodes, the same node twice, or nodes together with a
/// group. Pure; any thread.
absl::StatusOr<PlanExplanation> Explain(const Plan& plan, const ExplainFilter& filter);

}  // namespace fusion
