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

/// Improves groups by changes of a few neighbours until none gains.
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
    // Atoms: what moves as a whole.
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
    kPromised,  // what gains by cheap bounds
    kThorough,  // and what does not
    kJoins,     // of two linked groups, whatever it costs to know: the ledger asks for each anyway
  };

  // The count of scheduled ops where a stage ends.
  int64_t EffortOf(Stage stage) const;

  // Groups replaced by others.
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

  // Those with most to gain first: what is above the bound.
  absl::Status WakeAll();

  // Microseconds, or what stands for them: infinite where there is no schedule.
  absl::StatusOr<double> Cost(const std::vector<LoopId>& loops);

  // Never above the cost of the ops, in one group or several.
  double Bound(const std::vector<LoopId>& loops) const;

  // What stands for the bytes that a group leaves in memory for others; never more than several
  // groups of its ops leave.
  double KeptUs(const std::vector<LoopId>& loops) const;

  double OverUs(const GroupVerdict& verdict) const;

  // Cost and bound of a group that there is.
  struct Figures {
    double cost = -1;  // below 0: not asked for yet
    double bound = 0;
  };
  absl::StatusOr<Figures> FiguresOf(int g);

  // Takes the change for the best one if it gains more than that.
  absl::Status Consider(std::vector<int> old, Sets fresh, Change* best);

  // What a rule favours counts for less only as a whole, which steps of two groups do not reach; a
  // registered kernel computes a whole match or nothing.
  absl::Status JoinFavoured();

  absl::Status JoinMatches(const Sets& matches);

  // The atoms of groups, in the order of their first ops.
  Sets AtomsOf(const std::vector<int>& groups) const;

  // The ops of group g that depend on op l (or on which it depends), itself included, whole atoms.
  std::vector<LoopId> Closure(int g, LoopId l, bool readers) const;

  static std::vector<LoopId> Without(const std::vector<LoopId>& all,
                                     const std::vector<LoopId>& part);

  // Whether a group reads from these ops, or they from it.
  bool Touches(const std::vector<LoopId>& part, int g, bool readers) const;

  // Groups that may stand in the place of some, and the sum of their bounds.
  struct Try {
    double bound;
    Sets fresh;
  };

  Try MakeTry(std::vector<LoopId> one, std::vector<LoopId> other) const;

  // The most promising of `tries`, by bounds: the rest gains no more than the best change so far,
  // or there are many.
  absl::Status ConsiderBest(const std::vector<int>& old, std::vector<Try> tries, Change* best);

  // Adds to `tries` what of one group may move to another one: an op with all in its group that
  // depends on it (`readers`) or on which it depends, if the other group is linked with these. With
  // `any` also if it is not, and all but these.
  void AddMoves(int from, int to, bool readers, bool any, std::set<std::vector<LoopId>>* seen,
                std::vector<Try>* tries) const;

  // Ops of one of two groups move to the other one, with all that must move with them; in the
  // thorough stage in either direction, whichever of the two then comes first.
  absl::Status Move(int a, int b, Change* best);

  // A group becomes two: some ops with all that depend on them, or on which they depend, and the
  // rest.
  absl::Status Cut(int g, Change* best);

  // The best groups of all ops of some groups, if these are few.
  absl::Status SolveWindow(const std::vector<int>& old, Change* best);

  // Groups that may change together with g: those it is linked with, nearest first.
  std::vector<int> NeighboursOf(int g) const;

  // Those that run at about the same time and are not linked with it.
  std::vector<int> BesideOf(int g, const std::vector<int>& neighbours) const;

  bool MayJoin(int a, int b) const;

  // A group, those around it and the ops of all, ascending.
  struct Surroundings {
    std::vector<int> groups;  // the group first
    std::vector<LoopId> loops;
    std::vector<int> key;
  };

  // The key is equal for groups that look alike and have neighbours that do, and whose atoms are
  // cut alike: what is best for one of them is best for the others.
  Surroundings SurroundingsOf(int g, const std::vector<int>& neighbours,
                              const std::vector<int>& beside);

  // A change in positions of groups and ops of its surroundings; no groups: nothing gains.
  struct Recipe {
    std::vector<size_t> groups;
    std::vector<std::vector<size_t>> fresh;
    double gain = 0;
  };

  static Recipe RecipeOf(const Change& change, const Surroundings& around);

  static Change Follow(const Recipe& recipe, const Surroundings& around);

  absl::Status Improve(int g);

  // What no change of two groups reaches: three at once, and few ops exactly.
  absl::Status SolveAround(int g, const std::vector<int>& neighbours, Change* best);

  void Commit(Change& change);

  // Groups that became one. What is cut or moved shows in the pairs of the groups that are left.
  void Record(const Change& change);

  static std::vector<int> SidesOf(const std::vector<LoopId>& first,
                                  const std::vector<LoopId>& second);

  // Joins of two groups that were looked at and are not `best`, each once.
  absl::Status RecordRefused(const Change& best);

  // Why two groups, which are there, do not become one now; empty where nobody has looked, or where
  // it is memory that decides.
  absl::StatusOr<Refusal> WhyNot(int a, int b);

  const Program& program_;
  const SearchLimits& limits_;
  const Objective& objective_;
  GroupEvaluator* evaluator_;
  const OpLinks& links_;
  CostBound bound_;
  GroupGraph graph_;
  const bool whole_nodes_;  // an atom is all of a node
  Sets atoms_;
  std::vector<int> atom_of_;           // by op
  std::vector<bool> frozen_;           // by atom
  std::vector<Figures> figures_;       // by group
  mutable std::vector<int> found_in_;  // by op: the last Closure that it is in
  mutable int closures_ = 0;
  std::deque<int> dirty_;  // groups whose changes are to be looked at
  std::set<int> waiting_;  // those of dirty_
  std::unordered_map<std::vector<int>, Recipe, HashOfKey> recipes_;  // by key of surroundings
  double least_gain_ = kMinGainUs;
  Stage stage_ = Stage::kPromised;
  int64_t effort_ = 0;                      // where looking ends, by GroupEvaluator::scheduled_ops
  std::vector<std::pair<int, int>> tried_;  // joins looked at for the group of Improve
  std::unordered_set<std::vector<int>, HashOfKey> refused_;  // joins considered_ tells about
  std::vector<Considered> considered_;
};

}  // namespace fusion
