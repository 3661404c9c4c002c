#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/bundle/answer.h"

namespace fusion {

/// Which entries of a ledger are wanted; all of them by default.
struct ExplainFilter {
  /// Canonical node positions. One: entries with it on some side. Two: entries with one of them on
  /// each side, or with both in one group. Not more.
  std::vector<int> nodes;
  /// A position in Plan::groups: entries about it, and candidates of its nodes alone. -1: any.
  int group = -1;
};

/// A word for a reason, in general.
struct RefusalMeaning {
  std::string code;
  std::string meaning;
};

/// A plan as people look at it: why it is what it is.
struct PlanExplanation {
  /// Without tensors, constants, launches and what binds them. In every place of a decision the
  /// nodes of both sides.
  Plan plan;
  Digest plan_key;
  std::vector<std::string> node_names;  // by canonical node; empty: not known
  std::optional<CacheOutcome> cache;    // not set: asked for by key
  std::vector<RefusalMeaning> codes;    // that the decisions mention, in alphabetical order
};

/// The part of `plan` that `filter` asks for; key, names and cache are the caller's to fill in.
/// InvalidArgument, naming the field, for a node or a group that the plan does not have, more than
/// two nodes, or both. Pure; any thread.
absl::StatusOr<PlanExplanation> Explain(const Plan& plan, const ExplainFilter& filter);

}  // namespace fusion
