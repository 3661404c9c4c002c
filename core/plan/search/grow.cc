#include "core/plan/search/grow.h"

#include <algorithm>
#include <array>
#include <queue>
#include <set>

#include "core/plan/cost/gain.h"
#include "core/plan/sets/loop_sets.h"

namespace fusion {
namespace {

// Agglomeration over the group graph. Groups are numbered; a merged group takes a new number.
class Grower {
 public:
  Grower(const Grouping& start, const std::map<NodeId, std::string>& unfused_nodes,
         GroupEvaluator* evaluator)
      : program_(evaluator->program()), unfused_nodes_(unfused_nodes), evaluator_(evaluator) {
    group_of_.assign(program_.ops.size(), -1);
    for (const std::vector<LoopId>& loops : start.groups) {
      place_.push_back(order_.size());
      order_.push_back(AddGroup(loops));
    }
    for (size_t g = 0; g < loops_.size(); ++g) Connect(static_cast<int>(g));
  }

  absl::StatusOr<Grouping> Run() {
    for (size_t g = 0; g < loops_.size(); ++g) RETURN_IF_ERROR(Consider(static_cast<int>(g)));
    for (tier_ = 0; tier_ < kTiers; ++tier_) {
      RETURN_IF_ERROR(WeighPending());
      RETURN_IF_ERROR(MergeAll());
    }
    Grouping out;
    for (size_t g = 0; g < loops_.size(); ++g) {
      if (alive_[g]) out.groups.push_back(loops_[g]);
    }
    out.groups = TopologicalOrder(program_, std::move(out.groups));
    out.considered = std::move(considered_);
    return out;
  }

 private:
  static constexpr int kTiers = 3;

  struct Candidate {
    int tier;           // smaller first
    double benefit_us;  // larger first
    int producer;
    int consumer;
    bool operator<(const Candidate& o) const {
      // Ties break on the group numbers, so that the order never depends on anything else.
      return std::tie(o.tier, benefit_us, o.producer, o.consumer) <
             std::tie(tier, o.benefit_us, producer, consumer);
    }
  };

  bool BothAlive(const Candidate& c) const {
    return alive_[Index(c.producer)] && alive_[Index(c.consumer)];
  }

  absl::Status WeighPending() {
    std::vector<Candidate> pending = std::move(pending_[static_cast<size_t>(tier_)]);
    for (const Candidate& c : pending) {
      if (BothAlive(c)) RETURN_IF_ERROR(Weigh(c));
    }
    return absl::OkStatus();
  }

  absl::Status MergeAll() {
    while (!queue_.empty()) {
      Candidate c = queue_.top();
      queue_.pop();
      if (!BothAlive(c)) {
        Record(c, Refuse(RefusalCode::kSuperseded, "one of the two went into another group first"));
        continue;
      }
      if (HasPathAround(c.producer, c.consumer)) {
        // For good: a merge of what lies between leaves a group between, unless one of the two is
        // part of it and so another group.
        Record(c, Refuse(RefusalCode::kCyclic, "another group lies between the two"));
        continue;
      }
      Record(c, {});
      RETURN_IF_ERROR(Merge(c));
    }
    return absl::OkStatus();
  }

  // The tier of a merge; lower tiers come first, whatever the gain. The gain of a merge does not
  // show what it prevents later: a value that several ops read either is in the group that computes
  // it, or is written and read again. So contractions first take the ops that follow them, then
  // those that lead to them, then each other.
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
    seen_in_.push_back(0);
    return g;
  }

  // The group that computes a value, looking through reinterpretations; -1 for inputs.
  int WriterOf(ValueId v) const {
    LoopId l = program_.value(v).producer;
    if (l == kNoLoop) return -1;
    if (program_.op(l).IsAlias()) return WriterOf(program_.op(l).inputs[0]);
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

  // A path from `from` to `to` other than the direct edge. Paths only go forward in order_.
  bool HasPathAround(int from, int to) {
    size_t end = place_[Index(to)];
    std::vector<int> stack = {from};
    ++search_;
    while (!stack.empty()) {
      int g = stack.back();
      stack.pop_back();
      for (int next : readers_[Index(g)]) {
        if (next == to && g != from) return true;
        if (place_[Index(next)] >= end || seen_in_[Index(next)] == search_) continue;
        seen_in_[Index(next)] = search_;
        stack.push_back(next);
      }
    }
    return false;
  }

  // Inserts a merged group into order_: groups between the two that depend on the first move behind
  // it, the rest before it.
  void Reorder(const Candidate& c, int merged) {
    size_t begin = place_[Index(c.producer)];
    size_t end = place_[Index(c.consumer)];
    std::vector<int> before;
    std::vector<int> behind;
    ++search_;
    seen_in_[Index(c.producer)] = search_;
    for (size_t i = begin + 1; i < end; ++i) {
      int g = order_[i];
      if (g < 0) continue;
      const std::set<int>& from = writers_[Index(g)];
      bool reads = std::any_of(from.begin(), from.end(),
                               [&](int w) { return seen_in_[Index(w)] == search_; });
      if (reads) seen_in_[Index(g)] = search_;
      (reads ? behind : before).push_back(g);
    }
    before.push_back(merged);
    before.insert(before.end(), behind.begin(), behind.end());
    for (size_t i = begin; i <= end; ++i) {
      order_[i] = i - begin < before.size() ? before[i - begin] : -1;
      if (order_[i] >= 0) place_[Index(order_[i])] = i;
    }
  }

  absl::Status Consider(int g) {
    for (int reader : readers_[Index(g)]) RETURN_IF_ERROR(Consider(g, reader));
    return absl::OkStatus();
  }

  bool IsConstantGroup(int g) const { return evaluator_->AreConstant(loops_[Index(g)]); }

  bool IsAlone(int g) const {
    return std::any_of(loops_[Index(g)].begin(), loops_[Index(g)].end(),
                       [&](LoopId l) { return unfused_nodes_.contains(program_.op(l).origin); });
  }

  absl::Status Consider(int producer, int consumer) {
    Candidate c{Tier(producer, consumer), 0, producer, consumer};
    if (c.tier <= tier_) return Weigh(c);
    // One of the two may have been merged since.
    pending_[static_cast<size_t>(c.tier)].push_back(c);
    return absl::OkStatus();
  }

  absl::Status Weigh(Candidate c) {
    const int producer = c.producer;
    const int consumer = c.consumer;
    // Work on weights alone is done once, before the first run. It must not move into every run.
    if (IsConstantGroup(producer) != IsConstantGroup(consumer)) return absl::OkStatus();
    if (loops_[Index(producer)].size() + loops_[Index(consumer)].size() > kMostOps) {
      Record(c, Refuse(RefusalCode::kLarge, "more than ", kMostOps, " loop ops in one kernel"));
      return absl::OkStatus();
    }
    std::vector<LoopId> union_loops = Union(loops_[Index(producer)], loops_[Index(consumer)]);
    std::string wide = TooWide(program_, union_loops);
    if (!wide.empty()) {
      Record(c, Refuse(RefusalCode::kWide, wide));
      return absl::OkStatus();
    }
    if (IsAlone(producer) || IsAlone(consumer)) {
      Record(c, Refuse(RefusalCode::kAlone, "a kernel of a node failed, so it fuses with nothing"));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const GroupVerdict* a, evaluator_->Evaluate(loops_[Index(producer)]));
    ASSIGN_OR_RETURN(const GroupVerdict* b, evaluator_->Evaluate(loops_[Index(consumer)]));
    ASSIGN_OR_RETURN(const GroupVerdict* both, evaluator_->Evaluate(union_loops));
    if (!both->refusal.empty()) {
      Record(c, both->refusal);
      return absl::OkStatus();
    }
    c.benefit_us = a->weighed_us() + b->weighed_us() - both->weighed_us();
    if (Refusal loss = WithoutGain(*a, *b, *both); !loss.empty()) {
      Record(c, std::move(loss));
      return absl::OkStatus();
    }
    queue_.push(c);
    return absl::OkStatus();
  }

  absl::Status Merge(const Candidate& c) {
    int merged = AddGroup(Union(loops_[Index(c.producer)], loops_[Index(c.consumer)]));
    place_.push_back(0);
    Reorder(c, merged);
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
    RETURN_IF_ERROR(Consider(merged));
    for (int w : writers_[Index(merged)]) RETURN_IF_ERROR(Consider(w, merged));
    return absl::OkStatus();
  }

  void Record(const Candidate& c, Refusal refusal) {
    considered_.push_back(
        {loops_[Index(c.producer)], loops_[Index(c.consumer)], std::move(refusal)});
  }

  const Program& program_;
  const std::map<NodeId, std::string>& unfused_nodes_;
  GroupEvaluator* evaluator_;
  std::vector<int> group_of_;  // by loop op
  std::vector<std::vector<LoopId>> loops_;
  std::vector<bool> alive_;
  std::vector<std::set<int>> readers_;
  std::vector<std::set<int>> writers_;
  std::vector<int> order_;     // living groups, each after those that it reads; -1: free place
  std::vector<size_t> place_;  // of a living group in order_
  std::vector<int> seen_in_;   // the last search that visited a group
  int search_ = 0;
  std::priority_queue<Candidate> queue_;
  int tier_ = -1;  // candidates of higher tiers are not weighed yet
  std::array<std::vector<Candidate>, kTiers> pending_;  // by tier
  std::vector<Considered> considered_;
};

}  // namespace

absl::StatusOr<Grouping> GrowGroups(const Grouping& start,
                                    const std::map<NodeId, std::string>& unfused_nodes,
                                    GroupEvaluator* evaluator) {
  return Grower(start, unfused_nodes, evaluator).Run();
}

}  // namespace fusion
