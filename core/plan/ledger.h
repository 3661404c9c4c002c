#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/refusal.h"
#include "core/bundle/options.h"
#include "core/graph/program.h"

namespace fusion {

class GroupEvaluator;
struct PlannedModel;
enum class ProgramOf : uint8_t;

/// A candidate as a search met it: all it has to keep for the ledger, which works out the rest.
struct Considered {
  std::vector<LoopId> first;   // ascending; the side that is read from
  std::vector<LoopId> second;  // ascending; empty: about the first alone
  Refusal refusal;             // empty: taken
};

/// The decision ledger of a plan, into `model->plan`: why every group is one kernel, why every two
/// of its groups of which one reads from the other are two, why near ones are that read the same
/// value, and what became of each candidate of `considered`. With the terms of both sides and of
/// the whole, and with the smallest change that would turn the verdict, worked out from the
/// estimates or by trying. Equal entries are one.
///
/// `model` is complete but for this; `by_node` are the sets of ops with one kernel a node. What
/// `evaluator` knows is used, what it does not know it is asked. Deterministic; fails only as its
/// cancel token says.
absl::Status WriteLedger(const Graph& graph, ProgramOf of,
                         const std::vector<std::vector<LoopId>>& by_node,
                         const std::vector<Considered>& considered, const PlanOptions& options,
                         const std::map<NodeId, std::string>& alone, GroupEvaluator* evaluator,
                         PlannedModel* model);

/// "12.31 us together, 12.04 us apart".
std::string TimesText(double together_us, double apart_us);
/// Why high compute pressure forbids a group of such a speed-up.
std::string SpeedupText(double speedup);

}  // namespace fusion
