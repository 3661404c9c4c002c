#include "core/plan/grouping.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>

#include "absl/strings/cord.h"
#include "core/plan/planner.h"

namespace fusion {
namespace {

// The ops of a node in runs of at most kMostOps: what the parts of a node read lies in earlier
// ones.
std::vector<std::vector<LoopId>> Parts(const std::vector<LoopId>& loops) {
  std::vector<std::vector<LoopId>> parts;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (i % kMostOps == 0) parts.emplace_back();
    parts.back().push_back(loops[i]);
  }
  return parts;
}

// What is computed from weights alone, once, and the rest: no launch of a run makes what others
// need before the first run. Neither is empty.
std::vector<std::vector<LoopId>> ByConstancy(const std::vector<LoopId>& loops,
                                             const GroupEvaluator& evaluator) {
  std::vector<LoopId> constant;
  std::vector<LoopId> running;
  for (LoopId l : loops) (evaluator.AreConstant({l}) ? constant : running).push_back(l);
  if (constant.empty() || running.empty()) return {loops};
  return {std::move(constant), std::move(running)};
}

// The same of what lies before, between and behind the repeats of a node, and each of these alone.
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

// True for a filled border: an input copied into the middle of a larger space.
bool IsBorder(const LoopOp& op) {
  return op.kind == LoopOp::kLoop && !op.body.reduce && op.body.reads.size() == 1 &&
         !op.body.reads[0].guards.empty();
}

// A border and the windows that read it may be one kernel or two. Every block of windows fills the
// border again, so that two are the better the more blocks there are.
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

// Fails if no kernel of the op would compile in reasonable time.
absl::Status BlameNode(const Graph& graph, NodeId node, std::string_view reason) {
  if (node == kNoNode) return Unimplemented(reason);  // a copy that no node asked for
  absl::Status status = Unimplemented(graph.Describe(node), ": ", reason);
  status.SetPayload(kFailedNode, absl::Cord(StrCat(node)));
  return status;
}

// `loops`, of one node, as one group if there is a schedule, else each as its own.
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

Refusal WithoutGain(const GroupVerdict& first, const GroupVerdict& second,
                    const GroupVerdict& together) {
  const double apart_us = first.estimate.time_us + second.estimate.time_us;
  const double together_us = together.estimate.time_us;
  const double weighed_us = first.weighed_us() + second.weighed_us();
  if (weighed_us - together.weighed_us() > kMinGainUs) return {};
  std::string times = TimesText(together_us, apart_us);
  if (apart_us - together_us <= kMinGainUs) return Refuse(RefusalCode::kNoGain, times);
  return Refuse(RefusalCode::kBias, times, "; rules count them as ",
                TimesText(together.weighed_us(), weighed_us));
}

std::string TooWide(const Program& program, const std::vector<LoopId>& loops) {
  size_t operands = 0;
  size_t pieces = 0;
  for (LoopId l : loops) {
    const LoopOp& op = program.op(l);
    auto guarded =
        static_cast<size_t>(std::count_if(op.body.reads.begin(), op.body.reads.end(),
                                          [](const Read& read) { return !read.guards.empty(); }));
    operands += op.inputs.size();
    if (guarded > 1) pieces += guarded;
  }
  if (pieces > kMostPieces) {
    return StrCat(pieces, " inputs; one kernel reads at most ", kMostPieces,
                  " that lie one behind the other");
  }
  if (operands <= kMostOperands) return "";
  return StrCat(operands, " inputs; one kernel reads at most ", kMostOperands);
}

size_t EndOfLaunch(const std::vector<bool>& follows, size_t begin, size_t groups) {
  size_t end = begin + 1;
  while (end < groups && end < follows.size() && follows[end]) ++end;
  return end;
}

absl::StatusOr<Grouping> GroupByNode(const Graph& graph, GroupEvaluator* evaluator) {
  const Program& program = evaluator->program();
  // The nodes of a body are told apart.
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

std::vector<std::vector<LoopId>> TopologicalOrder(const Program& program,
                                                  std::vector<std::vector<LoopId>> groups) {
  // Smallest first op first among the ready ones: deterministic, and close to the program's own
  // order.
  std::vector<int> group_of(program.ops.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (LoopId l : groups[g]) group_of[static_cast<size_t>(l)] = static_cast<int>(g);
  }
  std::function<int(ValueId)> writer = [&](ValueId v) {
    LoopId l = program.value(v).producer;
    if (l == kNoLoop) return -1;
    if (program.op(l).IsAlias()) return writer(program.op(l).inputs[0]);
    return group_of[static_cast<size_t>(l)];
  };
  std::vector<std::set<int>> readers(groups.size());
  std::vector<int> waits(groups.size(), 0);
  for (size_t g = 0; g < groups.size(); ++g) {
    std::set<int> from;
    for (LoopId l : groups[g]) {
      for (ValueId in : program.op(l).inputs) {
        int w = writer(in);
        if (w >= 0 && w != static_cast<int>(g)) from.insert(w);
      }
    }
    waits[g] = static_cast<int>(from.size());
    for (int w : from) readers[static_cast<size_t>(w)].insert(static_cast<int>(g));
  }
  using Entry = std::pair<LoopId, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (waits[g] == 0) ready.emplace(groups[g].back(), static_cast<int>(g));
  }
  std::vector<std::vector<LoopId>> out;
  while (!ready.empty()) {
    auto g = static_cast<size_t>(ready.top().second);
    ready.pop();
    out.push_back(groups[g]);
    for (int r : readers[g]) {
      if (--waits[static_cast<size_t>(r)] == 0)
        ready.emplace(groups[static_cast<size_t>(r)].back(), r);
    }
  }
  FUSION_CHECK(out.size() == groups.size(), "groups without a cycle");
  return out;
}

}  // namespace fusion
