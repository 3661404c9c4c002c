#include "core/plan/search/group_by_node.h"

#include <algorithm>
#include <map>

#include "absl/strings/cord.h"
#include "core/base/threads/job.h"

namespace fusion {
namespace {

// The ops of a node in consecutive runs of at most kMostOps. Each run reads only from itself and
// earlier ones.
std::vector<std::vector<LoopId>> Parts(const std::vector<LoopId>& loops) {
  std::vector<std::vector<LoopId>> parts;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (i % kMostOps == 0) parts.emplace_back();
    parts.back().push_back(loops[i]);
  }
  return parts;
}

// Separates ops on weights alone, which run once before the first run, from the rest. Empty sets
// are left out.
std::vector<std::vector<LoopId>> ByConstancy(const std::vector<LoopId>& loops,
                                             const GroupEvaluator& evaluator) {
  std::vector<LoopId> constant;
  std::vector<LoopId> running;
  for (LoopId l : loops) (evaluator.AreConstant({l}) ? constant : running).push_back(l);
  if (constant.empty() || running.empty()) return {loops};
  return {std::move(constant), std::move(running)};
}

// The same for the ops before, between and after the repeats of a node; each repeat is alone.
std::vector<std::vector<LoopId>> AroundRepeats(const std::vector<LoopId>& loops,
                                               const GroupEvaluator& evaluator) {
  std::vector<std::vector<LoopId>> out;
  std::vector<LoopId> run;
  auto end_run = [&] {
    if (run.empty()) return;
    for (std::vector<LoopId>& same : ByConstancy(run, evaluator)) out.push_back(std::move(same));
    run.clear();
  };
  for (LoopId l : loops) {
    if (evaluator.program().op(l).kind != LoopOp::kRepeat) {
      run.push_back(l);
      continue;
    }
    end_run();
    out.push_back({l});
  }
  end_run();
  return out;
}

// True for padding: an input copied into the middle of a larger space.
bool IsBorder(const LoopOp& op) {
  return op.kind == LoopOp::kLoop && !op.body.reduce && op.body.reads.size() == 1 &&
         !op.body.reads[0].guards.empty();
}

// Padding and the windows that read it may be one kernel or two. Every block of windows recomputes
// its padding, so two are the better the more blocks there are.
absl::StatusOr<std::vector<std::vector<LoopId>>> SplitBorder(std::vector<LoopId> loops,
                                                             GroupEvaluator* evaluator) {
  std::vector<std::vector<LoopId>> whole = {loops};
  if (loops.size() < 2 || !IsBorder(evaluator->program().op(loops.front()))) return whole;
  std::vector<std::vector<LoopId>> parts = {{loops.front()}, {loops.begin() + 1, loops.end()}};
  ASSIGN_OR_RETURN(const GroupVerdict* together, evaluator->Evaluate(loops));
  double apart_us = 0;
  for (const std::vector<LoopId>& part : parts) {
    ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator->Evaluate(part));
    if (!verdict->refusal.empty()) return whole;
    apart_us += verdict->estimate.time_us;
  }
  bool split = !together->refusal.empty() || apart_us < together->estimate.time_us;
  return split ? parts : whole;
}

// The error for a node that no kernel can run.
absl::Status BlameNode(const Graph& graph, NodeId node, std::string_view reason) {
  if (node == kNoNode) return Unimplemented(reason);  // a copy that no node asked for
  absl::Status status = Unimplemented(graph.Describe(node), ": ", reason);
  status.SetPayload(kFailedNode, absl::Cord(StrCat(node)));
  return status;
}

// Adds `loops`, all of one node, as one group if that has a schedule, otherwise as one group each.
absl::Status AddWholeOrSingles(const Graph& graph, NodeId node, std::vector<LoopId> loops,
                               GroupEvaluator* evaluator,
                               std::vector<std::vector<LoopId>>* groups) {
  ASSIGN_OR_RETURN(const GroupVerdict* whole, evaluator->Evaluate(loops));
  if (whole->refusal.empty()) {
    groups->push_back(std::move(loops));
    return absl::OkStatus();
  }
  for (LoopId l : loops) {
    ASSIGN_OR_RETURN(const GroupVerdict* single, evaluator->Evaluate({l}));
    if (!single->refusal.empty()) {
      return BlameNode(graph, node,
                       StrCat("no schedule for its ", evaluator->program().op(l).label, ": ",
                              single->refusal.ToString()));
    }
    groups->push_back({l});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Grouping> GroupByNode(const Graph& graph, GroupEvaluator* evaluator) {
  const Program& program = evaluator->program();
  // Separates the nodes of a loop body.
  std::map<std::pair<NodeId, int>, std::vector<LoopId>> by_node;
  Grouping out;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].IsAlias()) continue;
    by_node[{program.ops[i].origin, program.ops[i].step}].push_back(static_cast<LoopId>(i));
  }
  for (const auto& [origin, loops] : by_node) {
    const NodeId node = origin.first;
    for (LoopId l : loops) {
      std::string wide = TooWide(program, {l});
      if (!wide.empty()) return BlameNode(graph, node, wide);
    }
    for (const std::vector<LoopId>& same : AroundRepeats(loops, *evaluator)) {
      for (std::vector<LoopId>& part : Parts(same)) {
        ASSIGN_OR_RETURN(std::vector<std::vector<LoopId>> pieces,
                         SplitBorder(std::move(part), evaluator));
        for (std::vector<LoopId>& piece : pieces) {
          RETURN_IF_ERROR(AddWholeOrSingles(graph, node, std::move(piece), evaluator, &out.groups));
        }
      }
    }
  }
  out.groups = TopologicalOrder(program, std::move(out.groups));
  return out;
}

}  // namespace fusion
