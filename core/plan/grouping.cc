#include "core/plan/grouping.h"

#include <algorithm>
#include <queue>
#include <set>

#include "absl/strings/cord.h"
#include "core/plan/planner.h"

namespace fusion {
namespace {

// A merge must gain this much, in microseconds: less is noise of the model.
constexpr double kMinGain = 0.05;
// Loop ops of one kernel: beyond it a kernel gains nothing that two lack, and takes ever longer to
// plan and to compile. The largest of a transformer layer have some 30.
constexpr size_t kMostOps = 96;
// With high compute pressure only groups this much faster than their nodes are formed.
constexpr double kPressureSpeedup = 1.5;

std::vector<LoopId> Union(const std::vector<LoopId>& a, const std::vector<LoopId>& b) {
  std::vector<LoopId> out;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::vector<int> Nodes(const Program& program, const std::vector<LoopId>& loops) {
  std::set<int> nodes;
  for (LoopId l : loops) nodes.insert(program.op(l).origin);
  nodes.erase(kNoNode);
  return {nodes.begin(), nodes.end()};
}

}  // namespace

GroupEvaluator::GroupEvaluator(const Program& program, const DeviceSpec& device,
                               const PlanOptions& options)
    : program_(program), device_(device), options_(options) {
  // What the program returns must be computed by every run, into memory of the caller; so must what
  // is made from it.
  returned_.assign(program.values.size(), false);
  for (ValueId v : program.outputs) returned_[static_cast<size_t>(v)] = true;
  constant_.assign(program.values.size(), false);
  readers_.resize(program.values.size());
  for (size_t v = 0; v < program.values.size(); ++v) {
    TensorKind kind = program.values[v].kind;
    constant_[v] = !returned_[v] && (kind == TensorKind::kWeight || kind == TensorKind::kConstant);
  }
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const LoopOp& op = program.ops[i];
    bool constant = !returned_[static_cast<size_t>(op.output)];
    for (ValueId in : op.inputs) {
      constant = constant && constant_[static_cast<size_t>(in)];
      readers_[static_cast<size_t>(in)].push_back(static_cast<LoopId>(i));
    }
    constant_[static_cast<size_t>(op.output)] = constant;
  }
  ClassifyOps();
  reinterpreted_.refusal = "reshape: read under a shape without common factors, so from memory";
}

void GroupEvaluator::ClassifyOps() {
  std::map<std::string, int> classes;
  for (const LoopOp& op : program_.ops) {
    auto name = [](int axis) { return StrCat("d", axis); };  // a bare number would be a constant
    std::string text = StrCat(op.label, op.kind);
    for (const LoopAxis& axis : op.body.axes)
      text += StrCat(" ", axis.name, ":", axis.extent.value());
    text += IndexMapToString(op.body.write, name);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Value& v = program_.value(op.inputs[i]);
      text += StrCat(v.type.ToString(), StrJoin(v.order, ","),
                     constant_[static_cast<size_t>(op.inputs[i])]);
      if (op.kind != LoopOp::kLoop) continue;
      const Read& read = op.body.reads[i];
      text += IndexMapToString(read.index, name);
      for (const Guard& g : read.guards) text += StrCat("?", g.axis, ":", g.begin, ":", g.end);
    }
    if (op.kind == LoopOp::kLoop) text += op.body.value.ToString();
    if (op.body.reduce) text += op.body.reduce->name();
    const Value& out = program_.value(op.output);
    text += StrCat(StrJoin(out.order, ","), out.tensor == kNoTensor,
                   constant_[static_cast<size_t>(op.output)]);
    class_of_op_.push_back(
        classes.try_emplace(std::move(text), static_cast<int>(classes.size())).first->second);
  }
}

bool GroupEvaluator::NeededOutside(ValueId v, const std::vector<LoopId>& loops) const {
  if (returned_[static_cast<size_t>(v)]) return true;
  const std::vector<LoopId>& readers = readers_[static_cast<size_t>(v)];
  return std::any_of(readers.begin(), readers.end(), [&](LoopId reader) {
    return !std::binary_search(loops.begin(), loops.end(), reader);
  });
}

std::vector<int> GroupEvaluator::Key(const std::vector<LoopId>& loops) const {
  std::vector<int> key;
  std::map<ValueId, int> number;
  for (LoopId l : loops) {
    const LoopOp& op = program_.op(l);
    key.push_back(class_of_op_[static_cast<size_t>(l)]);
    for (ValueId in : op.inputs) {
      key.push_back(number.try_emplace(in, static_cast<int>(number.size())).first->second);
    }
    number.try_emplace(op.output, static_cast<int>(number.size()));
    key.push_back(NeededOutside(op.output, loops) ? -2 : -1);
  }
  return key;
}

std::vector<ValueId> GroupEvaluator::Values(const std::vector<LoopId>& loops) const {
  std::vector<ValueId> values;
  ExtractProgram(program_, loops, &values);
  return values;
}

bool GroupEvaluator::ReadsReinterpreted(const std::vector<LoopId>& loops) const {
  auto inside = [&](LoopId l) { return std::binary_search(loops.begin(), loops.end(), l); };
  for (LoopId l : loops) {
    for (ValueId in : program_.op(l).inputs) {
      LoopId producer = program_.value(in).producer;
      if (producer == kNoLoop || program_.op(producer).kind != LoopOp::kReinterpret) continue;
      while (producer != kNoLoop && program_.op(producer).kind == LoopOp::kReinterpret) {
        producer = program_.value(program_.op(producer).inputs[0]).producer;
      }
      if (producer != kNoLoop && inside(producer)) return true;
    }
  }
  return false;
}

const GroupChoice& GroupEvaluator::Evaluate(const std::vector<LoopId>& loops) {
  if (ReadsReinterpreted(loops)) return reinterpreted_;
  std::unique_ptr<GroupChoice>& slot = known_[Key(loops)];
  if (!slot) slot = std::make_unique<GroupChoice>(Search(loops));
  return *slot;
}

GroupChoice GroupEvaluator::Search(const std::vector<LoopId>& loops) const {
  GroupChoice best;
  std::vector<ValueId> values;
  best.program = ExtractProgram(program_, loops, &values);
  std::vector<LoopId> all;
  for (size_t i = 0; i < loops.size(); ++i) all.push_back(static_cast<LoopId>(i));
  std::vector<bool> outside;
  std::vector<bool> constant;
  for (ValueId v : values) {
    outside.push_back(NeededOutside(v, loops));
    constant.push_back(constant_[static_cast<size_t>(v)]);
  }
  auto group = MakeGroup(best.program, all, outside, constant);
  if (!group.ok()) {
    best.refusal = std::string(Message(group.status()));
    return best;
  }
  best.group = *std::move(group);
  CandidateOptions options{.forbid_recompute = IsHighPressure(options_.hints.compute_pressure)};
  bool found = false;
  bool bitwise = options_.numerics == Numerics::kBitwise;
  for (const Choice& choice : EnumerateChoices(best.group, device_, options, &best.refusal)) {
    auto lowered = Lower(best.group, choice, device_, bitwise);
    if (!lowered.ok()) {
      if (!found) best.refusal = std::string(Message(lowered.status()));
      continue;
    }
    Estimate estimate = EstimateKernel(lowered->schedule, device_);
    if (!found || estimate.time_us < best.estimate.time_us) {
      best.lowered = *std::move(lowered);
      best.estimate = estimate;
      best.refusal.clear();
      found = true;
    }
  }
  return best;
}

absl::StatusOr<Grouping> GroupByNode(const Graph& graph, GroupEvaluator* evaluator) {
  const Program& program = evaluator->program();
  std::map<NodeId, std::vector<LoopId>> by_node;
  Grouping out;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].kind == LoopOp::kReinterpret) continue;
    by_node[program.ops[i].origin].push_back(static_cast<LoopId>(i));
  }
  for (auto& [node, loops] : by_node) {
    if (evaluator->Evaluate(loops).refusal.empty()) {
      out.groups.push_back(std::move(loops));
      continue;
    }
    for (LoopId l : loops) {
      const GroupChoice& single = evaluator->Evaluate({l});
      if (!single.refusal.empty()) {
        absl::Status status = Unimplemented(graph.Describe(node), ": no schedule for its ",
                                            program.op(l).label, ": ", single.refusal);
        status.SetPayload(kFailedNode, absl::Cord(StrCat(node)));
        return status;
      }
      out.groups.push_back({l});
    }
  }
  out.groups = TopologicalOrder(program, std::move(out.groups));
  return out;
}

namespace {

// Agglomeration over the group graph. Groups are numbered; a merged group takes a new number.
class Grower {
 public:
  Grower(const Grouping& start, const PlanOptions& options,
         const std::map<NodeId, std::string>& alone, GroupEvaluator* evaluator,
         const CancelToken* cancel)
      : program_(evaluator->program()),
        options_(options),
        alone_(alone),
        evaluator_(evaluator),
        cancel_(cancel) {
    group_of_.assign(program_.ops.size(), -1);
    for (const std::vector<LoopId>& loops : start.groups) AddGroup(loops);
    for (size_t g = 0; g < loops_.size(); ++g) Connect(static_cast<int>(g));
  }

  absl::StatusOr<Grouping> Run() {
    for (size_t g = 0; g < loops_.size(); ++g) Consider(static_cast<int>(g));
    while (!queue_.empty()) {
      if (cancel_ != nullptr) RETURN_IF_ERROR(cancel_->Check());
      Candidate c = queue_.top();
      queue_.pop();
      if (!alive_[Index(c.producer)] || !alive_[Index(c.consumer)]) continue;
      if (HasPathAround(c.producer, c.consumer)) {
        if (told_.insert({c.producer, c.consumer}).second) {
          Record(c, false, "cyclic: another group lies between the two");
        }
        blocked_.push_back(c);  // a later merge may clear the way
        continue;
      }
      Record(c, true, "");
      Merge(c);
    }
    Grouping out;
    for (size_t g = 0; g < loops_.size(); ++g) {
      if (alive_[g]) out.groups.push_back(loops_[g]);
    }
    out.groups = TopologicalOrder(program_, std::move(out.groups));
    out.decisions = std::move(decisions_);
    return out;
  }

 private:
  struct Candidate {
    int tier;     // smaller first
    double rank;  // larger first
    double benefit_us;
    int producer;
    int consumer;
    bool operator<(const Candidate& o) const {
      // Ties break on the group numbers, so that the order never depends on anything else.
      return std::tie(o.tier, rank, o.producer, o.consumer) <
             std::tie(tier, o.rank, producer, consumer);
    }
  };

  // Which merges come first, whatever they gain. The gain of a merge does not show what it makes
  // impossible later: a value that several ops read goes with the op that computes it, or it is
  // written and read again. So contractions first take what follows them, then what leads to them,
  // then each other.
  int Tier(int producer, int consumer) const {
    bool from = HasContraction(producer);
    bool to = HasContraction(consumer);
    return to ? (from ? 2 : 1) : 0;
  }

  bool HasContraction(int g) const {
    return std::any_of(loops_[Index(g)].begin(), loops_[Index(g)].end(), [&](LoopId l) {
      return program_.op(l).body.reduce.has_value() && program_.op(l).inputs.size() > 1;
    });
  }

  static size_t Index(int g) { return static_cast<size_t>(g); }

  int AddGroup(std::vector<LoopId> loops) {
    auto g = static_cast<int>(loops_.size());
    for (LoopId l : loops) group_of_[static_cast<size_t>(l)] = g;
    loops_.push_back(std::move(loops));
    alive_.push_back(true);
    readers_.emplace_back();
    writers_.emplace_back();
    return g;
  }

  // The group that computes a value, looking through reinterpretations; -1 for inputs.
  int WriterOf(ValueId v) const {
    LoopId l = program_.value(v).producer;
    if (l == kNoLoop) return -1;
    if (program_.op(l).kind == LoopOp::kReinterpret) return WriterOf(program_.op(l).inputs[0]);
    return group_of_[static_cast<size_t>(l)];
  }

  void Connect(int g) {
    for (LoopId l : loops_[Index(g)]) {
      for (ValueId in : program_.op(l).inputs) {
        int from = WriterOf(in);
        if (from >= 0 && from != g) {
          writers_[Index(g)].insert(from);
          readers_[Index(from)].insert(g);
        }
      }
    }
  }

  // Some path from `from` to `to` that leaves the direct edge.
  bool HasPathAround(int from, int to) const {
    std::vector<int> stack;
    std::set<int> seen;
    for (int next : readers_[Index(from)]) {
      if (next != to && seen.insert(next).second) stack.push_back(next);
    }
    while (!stack.empty()) {
      int g = stack.back();
      stack.pop_back();
      for (int next : readers_[Index(g)]) {
        if (next == to) return true;
        if (seen.insert(next).second) stack.push_back(next);
      }
    }
    return false;
  }

  void Consider(int g) {
    for (int reader : std::set<int>(readers_[Index(g)])) Consider(g, reader);
  }

  bool IsConstantGroup(int g) const {
    return std::all_of(loops_[Index(g)].begin(), loops_[Index(g)].end(),
                       [&](LoopId l) { return evaluator_->IsConstant(program_.op(l).output); });
  }

  bool IsAlone(int g) const {
    return std::any_of(loops_[Index(g)].begin(), loops_[Index(g)].end(),
                       [&](LoopId l) { return alone_.contains(program_.op(l).origin); });
  }

  void Consider(int producer, int consumer) {
    Candidate c{Tier(producer, consumer), 0, 0, producer, consumer};
    // Work on weights only is done once, before the first run: it must not move into every run.
    if (IsConstantGroup(producer) != IsConstantGroup(consumer)) return;
    if (loops_[Index(producer)].size() + loops_[Index(consumer)].size() > kMostOps) {
      Record(c, false, StrCat("large: more than ", kMostOps, " loop ops in one kernel"));
      return;
    }
    if (IsAlone(producer) || IsAlone(consumer)) {
      Record(c, false, "alone: a kernel of this node failed, so it fuses with nothing");
      return;
    }
    const GroupChoice& a = evaluator_->Evaluate(loops_[Index(producer)]);
    const GroupChoice& b = evaluator_->Evaluate(loops_[Index(consumer)]);
    const GroupChoice& both =
        evaluator_->Evaluate(Union(loops_[Index(producer)], loops_[Index(consumer)]));
    if (!both.refusal.empty()) {
      Record(c, false, both.refusal);
      return;
    }
    double apart = a.estimate.time_us + b.estimate.time_us;
    c.benefit_us = apart - both.estimate.time_us;
    // What the merge saves off chip, less what it needs more of in every thread's scratch.
    auto saved =
        static_cast<double>(a.estimate.activation_bytes + b.estimate.activation_bytes -
                            both.estimate.activation_bytes - both.estimate.recompute_bytes);
    auto scratch = static_cast<double>(
        both.estimate.on_chip_bytes - std::max(a.estimate.on_chip_bytes, b.estimate.on_chip_bytes));
    saved -= std::max(0.0, scratch) * evaluator_->threads();
    c.rank = c.benefit_us;
    if (IsHighPressure(options_.hints.memory_pressure) && saved > 0) {
      // Memory first: what saves bytes goes before everything else, most bytes first, even at some
      // cost in time.
      c.rank = 1e12 + saved;
    } else if (c.benefit_us <= kMinGain) {
      Record(c, false,
             StrCat("no-gain: ", Microseconds(both.estimate.time_us), " together, ",
                    Microseconds(apart), " apart"));
      return;
    }
    queue_.push(c);
  }

  static std::string Microseconds(double us) {
    return StrCat(static_cast<double>(static_cast<int64_t>(us * 100 + 0.5)) / 100, " us");
  }

  void Merge(const Candidate& c) {
    int merged = AddGroup(Union(loops_[Index(c.producer)], loops_[Index(c.consumer)]));
    for (int old : {c.producer, c.consumer}) {
      alive_[Index(old)] = false;
      for (int r : readers_[Index(old)]) {
        writers_[Index(r)].erase(old);
        if (r == c.producer || r == c.consumer) continue;
        writers_[Index(r)].insert(merged);
        readers_[Index(merged)].insert(r);
      }
      for (int w : writers_[Index(old)]) {
        readers_[Index(w)].erase(old);
        if (w == c.producer || w == c.consumer) continue;
        readers_[Index(w)].insert(merged);
        writers_[Index(merged)].insert(w);
      }
    }
    Consider(merged);
    for (int w : std::set<int>(writers_[Index(merged)])) Consider(w, merged);
    // What was in the way may be gone.
    std::vector<Candidate> retry = std::move(blocked_);
    blocked_.clear();
    for (const Candidate& b : retry) {
      if (alive_[Index(b.producer)] && alive_[Index(b.consumer)]) queue_.push(b);
    }
  }

  void Record(const Candidate& c, bool chosen, std::string reason) {
    decisions_.push_back(
        {.nodes = Nodes(program_, Union(loops_[Index(c.producer)], loops_[Index(c.consumer)])),
         .chosen = chosen,
         .reason = std::move(reason),
         .benefit_us = c.benefit_us});
  }

  const Program& program_;
  const PlanOptions& options_;
  const std::map<NodeId, std::string>& alone_;
  GroupEvaluator* evaluator_;
  const CancelToken* cancel_;
  std::vector<int> group_of_;  // by loop op
  std::vector<std::vector<LoopId>> loops_;
  std::vector<bool> alive_;
  std::vector<std::set<int>> readers_;
  std::vector<std::set<int>> writers_;
  std::priority_queue<Candidate> queue_;
  std::vector<Candidate> blocked_;
  std::set<std::pair<int, int>> told_;  // blocked pairs that have their decision
  std::vector<PlanDecision> decisions_;
};

// With high compute pressure: groups whose speed-up does not justify them fall back to their nodes.
Grouping DissolveSlowGroups(const Grouping& grown, const Grouping& start,
                            GroupEvaluator* evaluator) {
  Grouping out;
  out.decisions = grown.decisions;
  for (const std::vector<LoopId>& loops : grown.groups) {
    double apart = 0;
    std::vector<std::vector<LoopId>> parts;
    for (const std::vector<LoopId>& part : start.groups) {
      if (!std::includes(loops.begin(), loops.end(), part.begin(), part.end())) continue;
      parts.push_back(part);
      apart += evaluator->Evaluate(part).estimate.time_us;
    }
    double together = evaluator->Evaluate(loops).estimate.time_us;
    if (parts.size() < 2 || apart > kPressureSpeedup * together) {
      out.groups.push_back(loops);
      continue;
    }
    out.decisions.push_back({.nodes = Nodes(evaluator->program(), loops),
                             .chosen = false,
                             .reason = StrCat("pressure: speed-up ", apart / together,
                                              " is below 1.5 and compute pressure is high"),
                             .benefit_us = apart - together});
    out.groups.insert(out.groups.end(), parts.begin(), parts.end());
  }
  out.groups = TopologicalOrder(evaluator->program(), std::move(out.groups));
  return out;
}

}  // namespace

absl::StatusOr<Grouping> GrowGroups(const Grouping& start, const PlanOptions& options,
                                    const std::map<NodeId, std::string>& alone,
                                    GroupEvaluator* evaluator, const CancelToken* cancel) {
  ASSIGN_OR_RETURN(Grouping grown, Grower(start, options, alone, evaluator, cancel).Run());
  if (IsHighPressure(options.hints.compute_pressure))
    return DissolveSlowGroups(grown, start, evaluator);
  return grown;
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
    if (program.op(l).kind == LoopOp::kReinterpret) return writer(program.op(l).inputs[0]);
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
