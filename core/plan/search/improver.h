#pragma once

#include <deque>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/plan/cost/cost_bound.h"
#include "core/plan/cost/gain.h"
#include "core/plan/search/search.h"
#include "core/plan/sets/group_graph.h"

namespace fusion {

/// The search of SearchGroups: improves groups by changes of a few neighbours until none gains.
/// Internal to search.cc. Not thread-safe; all arguments must outlive it. Call Run once.
class Improver {
 public:
  Improver(const Grouping& nodes, const Objective& objective, const PlanOptions& options,
           const std::map<NodeId, std::string>& unfused_nodes, const SearchLimits& limits,
           GroupEvaluator* evaluator, const OpLinks& links, const Grouping& start)
      : program_(evaluator->program()),
        limits_(limits),
        objective_(objective),
        evaluator_(evaluator),
        links_(links),
        bound_(evaluator->program(), evaluator->device()),
        graph_(links, start.groups),
        whole_nodes_(IsHighPressure(options.hints.compute_pressure)),
        considered_(start.considered) {
    for (const Considered& c : considered_) {
      if (!c.refusal.empty()) refused_.insert(SidesOf(c.first, c.second));
    }
    // Atoms: units that move as a whole.
    atom_of_.assign(program_.ops.size(), -1);
    found_in_.assign(program_.ops.size(), 0);
    for (const std::vector<LoopId>& part : nodes.groups) {
      bool stays = std::any_of(part.begin(), part.end(), [&](LoopId l) {
        return unfused_nodes.contains(program_.op(l).origin);
      });
      bool forced =
          std::any_of(part.begin(), part.end(), [&](LoopId l) { return evaluator->IsForced(l); });
      if (stays) {
        AddAtom(part, true);
      } else if (whole_nodes_ || forced) {
        AddAtom(part, false);
      } else {
        for (LoopId l : part) AddAtom({l}, false);
      }
    }
  }

  absl::StatusOr<Grouping> Run();

 private:
  using Sets = std::vector<std::vector<LoopId>>;

  enum class Stage : uint8_t {
    kPromised,  // changes that gain by cheap bounds
    kThorough,  // also changes that do not, within limits_
    kJoins,  // joins of two linked groups, without limit: the ledger evaluates each of them anyway
  };

  // The value of GroupEvaluator::scheduled_ops at which a stage ends.
  int64_t EffortOf(Stage stage) const;

  // A replacement of groups by others.
  struct Change {
    std::vector<int> old;
    Sets fresh;
    double gain = 0;
  };

  void AddAtom(const std::vector<LoopId>& loops, bool frozen);

  int AtomOf(LoopId l) const { return atom_of_[static_cast<size_t>(l)]; }

  bool CanChange(int g) const { return !frozen_[static_cast<size_t>(AtomOf(graph_.loops(g)[0]))]; }

  bool IsConstantGroup(int g) const { return evaluator_->AreConstant(graph_.loops(g)); }

  void Wake(int g);

  // Queues all groups, those with the largest possible gain (cost above the bound) first.
  absl::Status WakeAll();

  // The cost in microseconds, with penalties for bytes; infinity if there is no schedule, or if
  // finding one would exceed effort_.
  absl::StatusOr<double> Cost(const std::vector<LoopId>& loops);

  // A lower bound of the cost of the ops in one group or several.
  double Bound(const std::vector<LoopId>& loops) const;

  // The penalty for the bytes that a group leaves in memory for others. Several groups of its ops
  // leave at least as many.
  double KeptUs(const std::vector<LoopId>& loops) const;

  // The penalty for bytes that a kernel holds beyond Objective::run_bytes.
  double OverUs(const GroupVerdict& verdict) const;

  // Cost and bound of a current group.
  struct Figures {
    double cost = -1;  // below 0: not computed yet
    double bound = 0;
  };
  absl::StatusOr<Figures> FiguresOf(int g);

  // Replaces `best` by this change if it gains more.
  absl::Status Consider(std::vector<int> old, Sets fresh, Change* best);

  // Tries whole matches. The factor of a rule counts only for whole matches, which steps of two
  // groups do not reach; a registered kernel computes a whole match or nothing.
  absl::Status JoinFavoured();

  absl::Status JoinMatches(const Sets& matches);

  // The atoms of groups, ordered by their first ops.
  Sets AtomsOf(const std::vector<int>& groups) const;

  // The ops of group g that depend on op l (`readers`), or that it depends on; includes l, extended
  // to whole atoms.
  std::vector<LoopId> Closure(int g, LoopId l, bool readers) const;

  static std::vector<LoopId> Without(const std::vector<LoopId>& all,
                                     const std::vector<LoopId>& part);

  // Whether group g reads from these ops (`readers`), or they read from it.
  bool Touches(const std::vector<LoopId>& part, int g, bool readers) const;

  // Groups that may replace some others, and the sum of their bounds.
  struct Try {
    double bound;
    Sets fresh;
  };

  Try MakeTry(std::vector<LoopId> one, std::vector<LoopId> other) const;

  // Considers the most promising of `tries` by their bounds; stops when the rest cannot beat the
  // best change, or after a limit.
  absl::Status ConsiderBest(const std::vector<int>& old, std::vector<Try> tries, Change* best);

  // Adds to `tries` the moves from one group to another: an op with all ops of its group that
  // depend on it (`readers`), or that it depends on, if the other group is linked with these. With
  // `any` also unlinked sets, and the complements of the sets.
  void AddMoves(int from, int to, bool readers, bool any, std::set<std::vector<LoopId>>* seen,
                std::vector<Try>* tries) const;

  // Moves ops between two groups, with all ops that must move with them. In the thorough stage in
  // both directions, whichever group then runs first.
  absl::Status Move(int a, int b, Change* best);

  // Splits a group in two: some ops with all that depend on them, or that they depend on, and the
  // rest.
  absl::Status Cut(int g, Change* best);

  // The best partition of all ops of some groups, if the ops are few.
  absl::Status SolveWindow(const std::vector<int>& old, Change* best);

  // Groups that may change together with g: those linked with it, nearest first.
  std::vector<int> NeighboursOf(int g) const;

  // Groups that run at about the same time as g and are not linked with it.
  std::vector<int> BesideOf(int g, const std::vector<int>& neighbours) const;

  bool MayJoin(int a, int b) const;

  // A group with the groups around it, and all their ops, ascending.
  struct Surroundings {
    std::vector<int> groups;  // the group first
    std::vector<LoopId> loops;
    std::vector<int> key;
  };

  // The key is equal for groups that are equal, have equal neighbours, and whose atoms are divided
  // alike. The best change for one of them is best for the others.
  Surroundings SurroundingsOf(int g, const std::vector<int>& neighbours,
                              const std::vector<int>& beside);

  // A change, as positions of groups and ops in its surroundings. No groups: nothing gains.
  struct Recipe {
    std::vector<size_t> groups;
    std::vector<std::vector<size_t>> fresh;
    double gain = 0;
  };

  static Recipe RecipeOf(const Change& change, const Surroundings& around);

  static Change Follow(const Recipe& recipe, const Surroundings& around);

  absl::Status Improve(int g);

  // Changes that no pair of groups reaches: three groups at once, and small sets of ops exactly.
  absl::Status SolveAround(int g, const std::vector<int>& neighbours, Change* best);

  void Commit(Change& change);

  // Adds a join to considered_. Splits and moves show in the entries of the resulting pairs.
  void Record(const Change& change);

  static std::vector<int> SidesOf(const std::vector<LoopId>& first,
                                  const std::vector<LoopId>& second);

  // Adds the joins of two groups that were tried and are not `best`, each once.
  absl::Status RecordRefused(const Change& best);

  // Why two current groups are not joined; empty if the join was not evaluated, or if memory
  // decides.
  absl::StatusOr<Refusal> WhyNot(int a, int b);

  const Program& program_;
  const SearchLimits& limits_;
  const Objective& objective_;
  GroupEvaluator* evaluator_;
  const OpLinks& links_;
  CostBound bound_;
  GroupGraph graph_;
  const bool whole_nodes_;  // atoms are whole nodes
  Sets atoms_;
  std::vector<int> atom_of_;           // by op
  std::vector<bool> frozen_;           // by atom
  std::vector<Figures> figures_;       // by group
  mutable std::vector<int> found_in_;  // by op: the last Closure that visited it
  mutable int closures_ = 0;
  std::deque<int> dirty_;  // groups whose changes are to be tried
  std::set<int> waiting_;  // the groups in dirty_
  std::unordered_map<std::vector<int>, Recipe, HashOfKey> recipes_;  // by key of surroundings
  double least_gain_ = kMinGainUs;
  Stage stage_ = Stage::kPromised;
  int64_t effort_ = 0;                      // GroupEvaluator::scheduled_ops at which the stage ends
  std::vector<std::pair<int, int>> tried_;  // joins tried for the group of Improve
  std::unordered_set<std::vector<int>, HashOfKey> refused_;  // joins that considered_ has
  std::vector<Considered> considered_;
};

}  // namespace fusion
