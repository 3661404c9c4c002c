#include "core/bundle/explanation.h"

#include <algorithm>
#include <set>

namespace fusion {
namespace {

absl::Status CheckFilter(const Plan& plan, const ExplainFilter& filter) {
  if (filter.nodes.size() > 2) {
    return InvalidArgument("nodes: ", filter.nodes.size(), " positions; expected at most 2");
  }
  for (size_t i = 0; i < filter.nodes.size(); ++i) {
    if (filter.nodes[i] >= 0 && filter.nodes[i] < plan.nodes) continue;
    return InvalidArgument("nodes[", i, "]: ", filter.nodes[i], "; the plan has nodes 0..",
                           plan.nodes - 1);
  }
  if (filter.nodes.size() == 2 && filter.nodes[0] == filter.nodes[1]) {
    return InvalidArgument("nodes: ", filter.nodes[0], " twice; expected two different ones");
  }
  if (filter.group < 0) return absl::OkStatus();
  if (!filter.nodes.empty()) return InvalidArgument("group: given together with nodes");
  if (static_cast<size_t>(filter.group) >= plan.groups.size()) {
    return InvalidArgument("group: ", filter.group, "; the plan has groups 0..",
                           plan.groups.size() - 1);
  }
  return absl::OkStatus();
}

bool Has(const std::vector<int>& nodes, int node) {
  return std::binary_search(nodes.begin(), nodes.end(), node);
}

// `place` has the nodes of both sides.
bool Wanted(const Plan& plan, const ExplainFilter& filter, const DecisionPlace& place) {
  if (filter.group >= 0) {
    if (place.first_group >= 0) {
      return place.first_group == filter.group || place.second_group == filter.group;
    }
    const std::vector<int>& inside = plan.groups[static_cast<size_t>(filter.group)].nodes;
    auto within = [&](const std::vector<int>& side) {
      return std::includes(inside.begin(), inside.end(), side.begin(), side.end());
    };
    return within(place.first) && within(place.second);
  }
  if (filter.nodes.empty()) return true;
  int a = filter.nodes.front();
  int b = filter.nodes.back();
  if (a == b) return Has(place.first, a) || Has(place.second, a);
  bool together = place.second.empty() && Has(place.first, a) && Has(place.first, b);
  return together || (Has(place.first, a) && Has(place.second, b)) ||
         (Has(place.first, b) && Has(place.second, a));
}

// True if the filter selects one of the groups that a tuned kernel runs.
bool Wanted(const Plan& plan, const ExplainFilter& filter, const TunedKernel& tuned) {
  if (filter.group < 0 && filter.nodes.empty()) return true;
  if (tuned.group < 0) return false;
  const int kernel = plan.groups[static_cast<size_t>(tuned.group)].kernel;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const PlanGroup& group = plan.groups[g];
    if (group.kernel != kernel) continue;
    const bool all = std::all_of(filter.nodes.begin(), filter.nodes.end(),
                                 [&](int node) { return Has(group.nodes, node); });
    if (filter.group >= 0 ? static_cast<size_t>(filter.group) == g : all) return true;
  }
  return false;
}

// Copies what an explanation shows of a plan: everything about groups, nothing that only a run
// needs.
Plan WithoutTensors(const Plan& plan) {
  Plan out;
  out.target = plan.target;
  out.isa = plan.isa;
  out.threads = plan.threads;
  out.numerics = plan.numerics;
  out.fusion = plan.fusion;
  out.kernels = plan.kernels;
  out.groups = plan.groups;
  out.arena_bytes = plan.arena_bytes;
  out.prepared_bytes = plan.prepared_bytes;
  out.symbols = plan.symbols;
  out.samples = plan.samples;
  out.nodes = plan.nodes;
  out.totals = plan.totals;
  out.op_by_op = plan.op_by_op;
  out.fallbacks = plan.fallbacks;
  out.skipped_passes = plan.skipped_passes;
  out.candidates = plan.candidates;
  out.device = plan.device;
  out.frontier = plan.frontier;
  out.search = plan.search;
  for (const PlanVariant& variant : plan.variants) {
    out.variants.push_back({variant.measure, variant.most,
                            std::make_shared<const Plan>(WithoutTensors(*variant.plan))});
  }
  return out;
}

}  // namespace

absl::StatusOr<PlanExplanation> Explain(const Plan& plan, const ExplainFilter& filter) {
  RETURN_IF_ERROR(CheckFilter(plan, filter));
  PlanExplanation out{.plan = WithoutTensors(plan)};
  std::erase_if(out.plan.search.kernels,
                [&](const TunedKernel& kernel) { return !Wanted(plan, filter, kernel); });
  std::set<std::string> codes;
  for (const PlanDecision& decision : plan.decisions) {
    PlanDecision wanted = decision;
    wanted.places.clear();
    for (DecisionPlace place : decision.places) {
      if (place.first_group >= 0) {
        place.first = plan.groups[static_cast<size_t>(place.first_group)].nodes;
      }
      if (place.second_group >= 0) {
        place.second = plan.groups[static_cast<size_t>(place.second_group)].nodes;
      }
      if (Wanted(plan, filter, place)) wanted.places.push_back(std::move(place));
    }
    if (wanted.places.empty()) continue;
    if (wanted.places.size() < decision.places.size()) {
      wanted.times = static_cast<int64_t>(wanted.places.size());
    }
    if (!decision.code.empty()) codes.insert(decision.code);
    out.plan.decisions.push_back(std::move(wanted));
  }
  for (const std::string& code : codes) {
    const RefusalEntry* row = FindRefusal(code);
    if (row != nullptr) out.codes.push_back({code, std::string(row->meaning)});
  }
  return out;
}

}  // namespace fusion
