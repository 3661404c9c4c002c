#include "core/pipeline/kernels/isolate.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "core/pipeline/kernels/kernel_builds.h"
#include "core/plan/planner.h"

namespace fusion {
namespace {

absl::Status NameKernel(const absl::Status& status, const PlanKernel& kernel) {
  return Annotate(status, StrCat("kernel ", kernel.symbol, " (", kernel.label, ")"));
}

// The error for a kernel whose group cannot be split. It names the node as MakePlan does; callers
// insert the model's name of the node.
absl::Status BlameNode(const absl::Status& status, const PlanKernel& kernel, NodeId node) {
  // Other errors are internal, also time-outs: the kernel's limit passed, not the caller's.
  const bool ours = !absl::IsUnimplemented(status);
  const std::string what(Message(ours ? NameKernel(status, kernel) : status));
  if (node == kNoNode) return ours ? Internal(what) : status;
  const std::string message = StrCat("node \"\" (", kernel.label, "): ", what);
  absl::Status named = ours ? Internal(message) : Unimplemented(message);
  named.SetPayload(kFailedNode, absl::Cord(StrCat(node)));
  return named;
}

// Whether a launch of a loop runs it.
bool InLoop(const Plan& plan, const PlanGroup& group) {
  const auto number = static_cast<int>(&group - plan.groups.data());
  return std::any_of(plan.loops.begin(), plan.loops.end(), [&](const PlanLoop& loop) {
    const auto first = plan.launches.begin() + loop.first;
    return std::any_of(first, first + loop.launches,
                       [&](const PlanLaunch& launch) { return launch.group == number; });
  });
}

// Whether the plan itself runs a kernel, not only a variant of it.
bool Runs(const Plan& plan, const Digest& kernel) {
  return std::any_of(plan.groups.begin(), plan.groups.end(), [&](const PlanGroup& group) {
    return plan.kernels[static_cast<size_t>(group.kernel)].key == kernel;
  });
}

// Adds the nodes of groups that a kernel runs to `unfused_nodes`. `first` becomes a node of such a
// group if it is unset.
void TakeApart(const Plan& plan, const Digest& kernel, UnfusedNodes* unfused_nodes, NodeId* first) {
  const size_t before = unfused_nodes->size();
  for (const PlanGroup& group : plan.groups) {
    if (plan.kernels[static_cast<size_t>(group.kernel)].key != kernel) continue;
    if (group.nodes.empty()) continue;
    if (*first == kNoNode) *first = group.nodes[0];
    if (RunsInSequence(group.kind)) {
      // The failed phase is unknown. With an unfused node there are no such launches, and the next
      // round finds it.
      if (unfused_nodes->size() == before) {
        unfused_nodes->emplace(group.nodes[0], StrCat("not fused: a launch of several phases, ",
                                                      group.label, ", failed; there are none now"));
      }
      continue;
    }
    if (group.nodes.size() == 1) {
      // In a loop it may hold several ops of the body.
      if (InLoop(plan, group)) {
        unfused_nodes->emplace(
            group.nodes[0], StrCat("its body is not fused: a kernel of ", group.label, " failed"));
      }
      continue;
    }
    for (int node : group.nodes) {
      unfused_nodes->emplace(node, StrCat("not fused: a kernel of ", group.label, " failed"));
    }
  }
}

}  // namespace

UnfusedNodes UnfusedNodesOf(const Plan& plan) {
  UnfusedNodes unfused_nodes;
  for (const PlanFallback& f : plan.fallbacks) {
    if (f.registered.empty()) unfused_nodes[f.node] = f.reason;
  }
  return unfused_nodes;
}

std::map<std::string, std::string> UnusedOf(const Plan& plan) {
  std::map<std::string, std::string> unused;
  for (const PlanFallback& f : plan.fallbacks) {
    if (!f.registered.empty()) unused.emplace(f.registered, f.reason);
  }
  return unused;
}

std::map<std::string, absl::Status> TakeRegisteredFailures(const Plan& plan,
                                                           std::vector<absl::Status>* results) {
  std::map<std::string, absl::Status> failed;
  for (const PlanGroup& group : plan.groups) {
    absl::Status& result = (*results)[static_cast<size_t>(group.kernel)];
    if (group.registered.empty() || !IsKernelsFault(result)) continue;
    failed.emplace(group.registered, result);
  }
  for (const PlanGroup& group : plan.groups) {
    if (!failed.contains(group.registered)) continue;
    (*results)[static_cast<size_t>(group.kernel)] = absl::OkStatus();
  }
  return failed;
}

absl::Status IsolateFailures(const Plan& plan, const std::vector<absl::Status>& results,
                             Logger& logger, UnfusedNodes* unfused_nodes) {
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k].ok()) continue;
    const PlanKernel& kernel = plan.kernels[k];
    if (!IsKernelsFault(results[k])) return NameKernel(results[k], kernel);
    size_t before = unfused_nodes->size();
    NodeId first = kNoNode;
    if (Runs(plan, kernel.key)) {
      TakeApart(plan, kernel.key, unfused_nodes, &first);
    } else if (!plan.variants.empty()) {
      unfused_nodes->emplace(kNoVariant, StrCat("no variant for few elements: a kernel of it, ",
                                                kernel.label, ", failed"));
    }
    if (unfused_nodes->size() == before) return BlameNode(results[k], kernel, first);
    logger.Warning(
        "group_unfused",
        {{"kernel", kernel.key.ToHex()}, {"label", kernel.label}, {"reason", Message(results[k])}});
  }
  return absl::OkStatus();
}

absl::Status CheckPinned(const Plan& plan, const std::vector<absl::Status>& results) {
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k].ok()) continue;
    absl::Status named = NameKernel(results[k], plan.kernels[k]);
    if (!IsKernelsFault(results[k])) return named;
    return FailedPrecondition("lock.kernels[", k, "]: ", Message(named));
  }
  return absl::OkStatus();
}

}  // namespace fusion
