#include "core/plan/obey/follow_registered.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/benefit/estimate.h"
#include "core/plan/obey/follow_rules.h"
#include "core/plan/rules/rule_match.h"
#include "core/plan/sets/group_graph.h"
#include "core/plan/sets/loop_sets.h"

namespace fusion {
namespace {

// Limit on matches of one kernel; a pattern with more is too general.
constexpr size_t kMostMatches = 4096;
// The largest integer up to which double is exact.
constexpr double kMostInteger = 9007199254740992.0;

bool IsRowMajor(const Value& value) {
  return !value.room && StorageStrides(value) == RowMajorStrides(value.type.shape.ToDims());
}

/// Binds matches of kernels' patterns in one graph to loop ops, params and constants.
class Binder {
 public:
  Binder(const SeenGraph& seen, const Grouping& nodes, GroupEvaluator* evaluator)
      : graph_(seen.graph),
        program_(evaluator->program()),
        evaluator_(*evaluator),
        by_node_(nodes.groups),
        loops_of_(seen.LoopsOfNodes(program_)),
        parts_of_(seen.PartsOfNodes(program_, nodes.groups)) {}

  /// The match, or why the kernel cannot run there.
  absl::StatusOr<RegisteredMatch> Bind(std::shared_ptr<const RegisteredKernel> kernel,
                                       const RuleMatch& found, std::string* why) {
    RegisteredMatch match;
    match.kernel = std::move(kernel);
    for (NodeId n : found.nodes) {
      match.loops = Union(match.loops, loops_of_[static_cast<size_t>(n)]);
    }
    *why = WhyNoKernel(match.loops);
    if (why->empty()) *why = BindParams(found, &match);
    if (why->empty()) *why = BindConstants(found, &match);
    if (!why->empty()) return match;
    for (NodeId n : found.nodes) {
      for (int part : parts_of_[static_cast<size_t>(n)]) {
        ASSIGN_OR_RETURN(const GroupVerdict* verdict,
                         evaluator_.Evaluate(by_node_[static_cast<size_t>(part)]));
        match.apart = Sum(match.apart, verdict->estimate);
      }
    }
    return match;
  }

 private:
  std::string WhyNoKernel(const std::vector<LoopId>& loops) const {
    if (loops.empty()) return "its nodes compute nothing";
    auto constant = [&](LoopId l) { return evaluator_.IsConstant(program_.op(l).output); };
    if (std::any_of(loops.begin(), loops.end(), constant)) {
      return "a part of it is computed from weights alone, once";
    }
    if (evaluator_.ReadsReinterpreted(loops)) {
      return "a value is read under another shape within it, so from memory";
    }
    return "";
  }

  std::string Text(const RegisteredKernel& kernel, size_t param) const {
    return StrCat("params[", param, "] ", kernel.param_texts[param]);
  }

  // Finds the value of each param. Every value that the match reads or writes must be a param.
  std::string BindParams(const RuleMatch& found, RegisteredMatch* match) const {
    std::vector<ValueId> values;
    const Program extracted = ExtractProgram(program_, match->loops, &values);
    std::map<TensorId, ValueId> reads;
    std::map<TensorId, ValueId> writes;
    std::set<ValueId> left;
    for (ValueId in : extracted.inputs) {
      const ValueId v = values[static_cast<size_t>(in)];
      reads[program_.value(v).tensor] = v;
      left.insert(v);
    }
    for (LoopId l : match->loops) {
      const ValueId v = program_.op(l).output;
      if (!evaluator_.NeededOutside(v, match->loops)) continue;
      writes[program_.value(v).tensor] = v;
      left.insert(v);
    }
    const RegisteredKernel& kernel = *match->kernel;
    for (size_t p = 0; p < kernel.params.size(); ++p) {
      const bool output = kernel.params[p].output;
      const TensorId tensor = TensorAt(graph_, found.assigned, kernel.params[p]);
      if (tensor == kNoTensor) return StrCat(Text(kernel, p), ": there is none here");
      // A param that an earlier node of the match writes is no input of the kernel.
      const std::map<TensorId, ValueId>& known = output ? writes : reads;
      auto value = known.find(tensor);
      if (value == known.end()) {
        return StrCat(Text(kernel, p),
                      output ? ": nothing outside of the match reads it as it is"
                             : ": the match does not read it as it is: it is a scalar constant, a "
                               "view of another tensor, computed within, or read as what is made "
                               "of it before the first run");
      }
      if (!IsRowMajor(program_.value(value->second))) {
        return StrCat(Text(kernel, p), ": does not lie dense and row-major in memory");
      }
      left.erase(value->second);
      match->params.push_back({value->second, output});
    }
    if (left.empty()) return "";
    const Value& missing = program_.value(*left.begin());
    const bool written =
        missing.producer != kNoLoop &&
        std::binary_search(match->loops.begin(), match->loops.end(), missing.producer);
    return StrCat(
        "params lack a tensor ", missing.type.ToString(),
        written ? " that is computed here and read outside of the match" : " that the match reads");
  }

  bool BindBytes(const RuleMatch& found, const KernelBytes& bytes, int64_t* out) const {
    if (bytes.value.empty()) return true;
    std::optional<double> value = ValueAt(graph_, evaluator_.device(), found.assigned, bytes.value);
    if (!value || !(*value >= 0 && *value <= static_cast<double>(kMaxKernelMemoryBytes))) {
      return false;
    }
    *out = static_cast<int64_t>(std::ceil(*value));
    return true;
  }

  std::string BindConstants(const RuleMatch& found, RegisteredMatch* match) const {
    const RegisteredKernel& kernel = *match->kernel;
    for (const KernelConstant& constant : kernel.constants) {
      std::optional<double> value =
          ValueAt(graph_, evaluator_.device(), found.assigned, constant.value);
      if (!value.has_value() || !std::isfinite(*value)) {
        return StrCat("constant ", constant.name, " has no value here");
      }
      if (!constant.integer) {
        match->constants.push_back(HexDouble(*value));
        continue;
      }
      if (*value != std::floor(*value) || std::abs(*value) > kMostInteger) {
        return StrCat("constant ", constant.name, " is ", *value, " here; expected an integer");
      }
      match->constants.push_back(StrCat(static_cast<int64_t>(*value)));
    }
    if (!BindBytes(found, kernel.scratch, &match->scratch_bytes) ||
        !BindBytes(found, kernel.workspace, &match->workspace_bytes)) {
      return StrCat("scratch_bytes or workspace_bytes is no number of 0..", kMaxKernelMemoryBytes,
                    " here");
    }
    if (kernel.time_us.empty()) return "";
    match->time_us = ValueAt(graph_, evaluator_.device(), found.assigned, kernel.time_us);
    return match->time_us.has_value() ? "" : "cost.time_us has no value here";
  }

  const Graph& graph_;
  const Program& program_;
  GroupEvaluator& evaluator_;
  const std::vector<std::vector<LoopId>>& by_node_;
  std::vector<std::vector<LoopId>> loops_of_;  // by node
  std::vector<std::vector<int>> parts_of_;     // by node, of by_node_
};

/// Joins groups to what forced kernels compute.
class RegisteredJoiner {
 public:
  RegisteredJoiner(const Program& program, const Grouping& start)
      : links_(program), graph_(links_, start.groups) {}

  /// Makes `loops` one group; else says why that cannot be.
  std::string Join(const std::vector<LoopId>& loops) {
    std::set<int> groups;
    size_t held = 0;
    for (LoopId l : loops) groups.insert(graph_.GroupOf(l));
    for (int g : groups) {
      if (taken_.contains(g)) return "another registered kernel is forced for a part of it";
      held += graph_.loops(g).size();
    }
    if (held != loops.size()) return "a rule keeps a part of it together with other nodes";
    const std::vector<int> old(groups.begin(), groups.end());
    if (old.size() > 1 && !graph_.CanReplace(old, {loops})) {
      return "what lies between its nodes would have to run before and after it";
    }
    taken_.insert(old.size() > 1 ? graph_.Replace(old, {loops}).front() : old.front());
    return "";
  }

  std::vector<std::vector<LoopId>> Groups() const {
    std::vector<std::vector<LoopId>> out;
    for (int g = 0; g < graph_.end(); ++g) {
      if (graph_.alive(g)) out.push_back(graph_.loops(g));
    }
    return out;
  }

 private:
  OpLinks links_;
  GroupGraph graph_;
  std::set<int> taken_;
};

bool HoldsUnfused(const SeenGraph& seen, const std::vector<NodeId>& nodes,
                  const std::map<NodeId, std::string>& unfused_nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](NodeId n) { return unfused_nodes.contains(seen.PositionOf(n)); });
}

}  // namespace

absl::StatusOr<std::set<NodeId>> NodesOfRegistered(
    const SeenGraph& seen, const DeviceSpec& device, const RegisteredKernels& kernels,
    const std::map<NodeId, std::string>& unfused_nodes) {
  std::set<NodeId> nodes;
  for (const std::shared_ptr<const RegisteredKernel>& kernel : kernels) {
    Rule rule = kernel->rule;
    bool asked = false;
    AskKernel note = [&asked](const std::vector<NodeId>&) {
      asked = true;
      return std::optional<MatchTerms>();
    };
    auto find = [&] {
      return MatchRules(seen.graph, device, {rule}, note, {.matches = kMostMatches});
    };
    absl::StatusOr<std::vector<RuleMatch>> found = find();
    if (asked) {
      rule.when.clear();
      found = find();
    }
    if (absl::IsResourceExhausted(found.status())) continue;
    RETURN_IF_ERROR(found.status());
    for (const RuleMatch& place : *found) {
      if (!HoldsUnfused(seen, place.nodes, unfused_nodes))
        nodes.insert(place.nodes.begin(), place.nodes.end());
    }
  }
  return nodes;
}

absl::StatusOr<Grouping> FollowRegistered(const SeenGraph& seen, const Grouping& nodes,
                                          Grouping start, const RegisteredKernels& kernels,
                                          const std::map<std::string, std::string>& unused,
                                          const std::map<NodeId, std::string>& unfused_nodes,
                                          GroupEvaluator* evaluator, RegisteredOutcome* outcome) {
  Binder binder(seen, nodes, evaluator);
  RegisteredJoiner joiner(evaluator->program(), start);
  RegisteredMatches matches;
  bool joined = false;
  AskKernel ask = [&](const std::vector<NodeId>& match) {
    return TermsOfMatch(seen, match, nodes, evaluator);
  };
  for (const std::shared_ptr<const RegisteredKernel>& kernel : kernels) {
    auto note = [&](std::string_view what) {
      outcome->notes.push_back(StrCat("registered kernel ", Quote(kernel->name()), " ", what));
    };
    absl::StatusOr<std::vector<RuleMatch>> found =
        MatchRules(seen.graph, evaluator->device(), {kernel->rule}, ask, {.matches = kMostMatches});
    if (absl::IsResourceExhausted(found.status())) {
      note(StrCat("does not run: ", Message(found.status())));
      continue;
    }
    RETURN_IF_ERROR(found.status());
    for (const RuleMatch& place : *found) {
      if (HoldsUnfused(seen, place.nodes, unfused_nodes)) continue;
      std::string why;
      ASSIGN_OR_RETURN(RegisteredMatch match, binder.Bind(kernel, place, &why));
      auto failed = unused.find(kernel->name());
      if (why.empty() && failed != unused.end()) {
        outcome->fallbacks.push_back({.node = seen.PositionOf(place.nodes.front()),
                                      .reason = failed->second,
                                      .registered = kernel->name()});
        continue;
      }
      if (why.empty() && kernel->force) why = joiner.Join(match.loops);
      if (!why.empty()) {
        note(StrCat("does not run at ", PatternText(kernel->rule),
                    seen.of_body() ? " in the body of a loop: " : ": ", why));
        continue;
      }
      joined |= kernel->force;
      matches.Add(std::move(match), kernel->force);
    }
  }
  evaluator->Follow(std::move(matches));
  if (joined) start.groups = TopologicalOrder(evaluator->program(), joiner.Groups());
  return start;
}

}  // namespace fusion
