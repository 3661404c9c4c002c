#include "core/plan/search.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/contains.h"
#include "core/plan/cost_bound.h"
#include "core/plan/exact.h"
#include "core/plan/flips.h"
#include "core/plan/group_graph.h"
#include "core/plan/loop_sets.h"

namespace fusion {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// With Objective::run_bytes: a byte between kernels counts as this many microseconds, more than all
// that keeping it there can save.
constexpr double kKeptByteUs = 1e3;
// A byte that a kernel holds beyond that: no single change may bring it below.
constexpr double kOverByteUs = 8 * kKeptByteUs;
// Loop ops to make schedules for in search of what the bounds promise: models stay far below, but a
// graph without any two equal parts would take minutes.
constexpr int64_t kLeastEffort = 20000;
constexpr int64_t kEffortOfAnOp = 8;
// What the bounds do not promise must gain this part of an average group to be worth the search.
constexpr double kThoroughGain = 0.01;
// Ways to cut a group, or to move ops between two, that are estimated: the most promising by their
// bounds.
constexpr size_t kMostTries = 20;
// Ops of a group, its last ones and its first ones, that may begin a move to another one.
constexpr size_t kMostBorder = 32;
// Groups before and after a group that may run beside it.
constexpr int kMostNear = 4;
// Groups that a group reads from or is read by, nearest first: a mask may be read by every layer.
constexpr size_t kMostNeighbours = 16;

using Sets = std::vector<std::vector<LoopId>>;

// Improves groups by changes of a few neighbours until none gains.
class Improver {
 public:
  Improver(const Grouping& nodes, const Objective& objective, const PlanOptions& options,
           const std::map<NodeId, std::string>& alone, const SearchLimits& limits,
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
      bool stays = std::any_of(part.begin(), part.end(),
                               [&](LoopId l) { return alone.contains(program_.op(l).origin); });
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

  absl::StatusOr<Grouping> Run() {
    for (Stage stage : {Stage::kPromised, Stage::kThorough, Stage::kJoins}) {
      stage_ = stage;
      recipes_.clear();
      effort_ = EffortOf(stage);
      RETURN_IF_ERROR(WakeAll());
      RETURN_IF_ERROR(JoinFavoured());
      while (!dirty_.empty()) {
        int g = dirty_.front();
        dirty_.pop_front();
        waiting_.erase(g);
        if (graph_.alive(g)) RETURN_IF_ERROR(Improve(g));
      }
    }
    Grouping out;
    out.groups = TopologicalOrder(program_, graph_.Groups());
    out.considered = std::move(considered_);
    return out;
  }

 private:
  enum class Stage : uint8_t {
    kPromised,  // what gains by cheap bounds
    kThorough,  // and what does not
    kJoins,     // of two linked groups, whatever it costs to know: the ledger asks for each anyway
  };

  // The count of scheduled ops where a stage ends.
  int64_t EffortOf(Stage stage) const {
    auto ops = static_cast<int64_t>(program_.ops.size());
    switch (stage) {
      case Stage::kPromised:
        return evaluator_->scheduled_ops() + std::max(kLeastEffort, kEffortOfAnOp * ops);
      case Stage::kThorough:
        return evaluator_->scheduled_ops() + limits_.effort_ops;
      case Stage::kJoins:
        break;
    }
    return std::numeric_limits<int64_t>::max();
  }

  // Groups replaced by others.
  struct Change {
    std::vector<int> old;
    Sets fresh;
    double gain = 0;
  };

  void AddAtom(const std::vector<LoopId>& loops, bool frozen) {
    for (LoopId l : loops) atom_of_[static_cast<size_t>(l)] = static_cast<int>(atoms_.size());
    atoms_.push_back(loops);
    frozen_.push_back(frozen);
  }

  int AtomOf(LoopId l) const { return atom_of_[static_cast<size_t>(l)]; }

  bool CanChange(int g) const { return !frozen_[static_cast<size_t>(AtomOf(graph_.loops(g)[0]))]; }

  bool IsConstantGroup(int g) const { return evaluator_->AreConstant(graph_.loops(g)); }

  void Wake(int g) {
    if (waiting_.insert(g).second) dirty_.push_back(g);
  }

  // Those with most to gain first: what is above the bound.
  absl::Status WakeAll() {
    std::vector<std::pair<double, int>> slack;
    double sum = 0;
    for (const std::vector<LoopId>& group : graph_.Groups()) {
      int g = graph_.GroupOf(group[0]);
      ASSIGN_OR_RETURN(Figures figures, FiguresOf(g));
      slack.emplace_back(figures.bound - figures.cost, g);
      sum += figures.cost;
    }
    std::stable_sort(slack.begin(), slack.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [least, g] : slack) Wake(g);
    least_gain_ = kMinGainUs;
    if (stage_ == Stage::kThorough && !slack.empty()) {
      double average = sum / static_cast<double>(slack.size());
      least_gain_ = std::max(kMinGainUs, kThoroughGain * average);
    }
    return absl::OkStatus();
  }

  // Microseconds, or what stands for them: infinite where there is no schedule.
  absl::StatusOr<double> Cost(const std::vector<LoopId>& loops) {
    if (loops.size() > kMostOps || !TooWide(program_, loops).empty()) return kInfinite;
    if (evaluator_->scheduled_ops() >= effort_ && !evaluator_->IsKnown(loops)) {
      return kInfinite;
    }
    ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_->Evaluate(loops));
    if (!verdict->refusal.empty()) return kInfinite;
    return verdict->weighed_us() + KeptUs(loops) + OverUs(*verdict);
  }

  // Never above the cost of the ops, in one group or several.
  double Bound(const std::vector<LoopId>& loops) const {
    // Nothing is known of what a registered kernel can do.
    if (evaluator_->registered().Of(loops) != nullptr) return KeptUs(loops);
    return bound_.Of(loops) * evaluator_->rules().LeastFactor(loops) + KeptUs(loops);
  }

  // What stands for the bytes that a group leaves in memory for others; never more than several
  // groups of its ops leave.
  double KeptUs(const std::vector<LoopId>& loops) const {
    if (!objective_.run_bytes.has_value()) return 0;
    return kKeptByteUs * static_cast<double>(evaluator_->KeptBytes(loops));
  }

  double OverUs(const GroupVerdict& verdict) const {
    int64_t over = verdict.run_bytes - objective_.run_bytes.value_or(verdict.run_bytes);
    return over <= 0 ? 0 : kOverByteUs * static_cast<double>(over);
  }

  // Cost and bound of a group that there is.
  struct Figures {
    double cost = -1;  // below 0: not asked for yet
    double bound = 0;
  };
  absl::StatusOr<Figures> FiguresOf(int g) {
    auto i = static_cast<size_t>(g);
    if (figures_.size() <= i) figures_.resize(i + 1);
    if (figures_[i].cost < 0) {
      ASSIGN_OR_RETURN(double cost, Cost(graph_.loops(g)));
      figures_[i] = {.cost = cost, .bound = Bound(graph_.loops(g))};
    }
    return figures_[i];
  }

  // Takes the change for the best one if it gains more than that.
  absl::Status Consider(std::vector<int> old, Sets fresh, Change* best) {
    double before = 0;
    double bound_before = 0;
    for (int g : old) {
      ASSIGN_OR_RETURN(Figures figures, FiguresOf(g));
      before += figures.cost;
      bound_before += figures.bound;
    }
    double wanted = before - std::max(best->gain, least_gain_);
    double bound = 0;
    for (const std::vector<LoopId>& group : fresh) bound += Bound(group);
    if (stage_ == Stage::kPromised && bound > bound_before - kMinGainUs) return absl::OkStatus();
    // What is known first: it may decide.
    if (fresh.size() > 1 && bound < wanted)
      std::stable_partition(fresh.begin(), fresh.end(), [&](const std::vector<LoopId>& group) {
        return evaluator_->IsKnown(group);
      });
    double after = 0;
    for (const std::vector<LoopId>& group : fresh) {
      if (after + bound >= wanted) return absl::OkStatus();
      bound -= Bound(group);
      ASSIGN_OR_RETURN(double cost, Cost(group));
      after += cost;
    }
    if (old.size() == 2 && fresh.size() == 1) tried_.emplace_back(old[0], old[1]);
    if (after >= wanted || !graph_.CanReplace(old, fresh)) return absl::OkStatus();
    *best = {std::move(old), std::move(fresh), before - after};
    return absl::OkStatus();
  }

  // What a rule favours counts for less only as a whole, which steps of two groups do not reach; a
  // registered kernel computes a whole match or nothing.
  absl::Status JoinFavoured() {
    for (const auto* matches :
         {&evaluator_->rules().favoured(), &evaluator_->registered().sets()}) {
      RETURN_IF_ERROR(JoinMatches(*matches));
    }
    return absl::OkStatus();
  }

  absl::Status JoinMatches(const Sets& matches) {
    for (const std::vector<LoopId>& match : matches) {
      std::set<int> found;
      std::set<int> atoms;
      for (LoopId l : match) {
        found.insert(graph_.GroupOf(l));
        atoms.insert(AtomOf(l));
      }
      std::vector<int> groups(found.begin(), found.end());
      bool changes = groups.size() > 1 && groups.size() <= kMostNeighbours &&
                     std::all_of(groups.begin(), groups.end(),
                                 [&](int g) { return CanChange(g) && MayJoin(groups[0], g); });
      if (!changes) continue;
      // All of their groups, or the match alone with the rest of each.
      std::vector<LoopId> whole;
      for (int a : atoms) whole = Union(whole, atoms_[static_cast<size_t>(a)]);
      std::vector<LoopId> all;
      Sets apart = {whole};
      for (int g : groups) {
        all = Union(all, graph_.loops(g));
        std::vector<LoopId> rest = Without(graph_.loops(g), whole);
        if (!rest.empty()) apart.push_back(std::move(rest));
      }
      Change best;
      if (apart.size() > 1) RETURN_IF_ERROR(Consider(groups, std::move(apart), &best));
      RETURN_IF_ERROR(Consider(groups, {std::move(all)}, &best));
      if (best.gain > 0) Commit(best);
    }
    return absl::OkStatus();
  }

  // The atoms of groups, in the order of their first ops.
  Sets AtomsOf(const std::vector<int>& groups) const {
    std::set<std::pair<LoopId, int>> found;
    for (int g : groups) {
      for (LoopId l : graph_.loops(g)) {
        int atom = AtomOf(l);
        found.insert({atoms_[static_cast<size_t>(atom)].front(), atom});
      }
    }
    Sets out;
    for (const auto& [first, atom] : found) out.push_back(atoms_[static_cast<size_t>(atom)]);
    return out;
  }

  // The ops of group g that depend on op l (or on which it depends), itself included, whole atoms.
  std::vector<LoopId> Closure(int g, LoopId l, bool readers) const {
    std::vector<LoopId> found;
    ++closures_;
    auto add = [&](LoopId op) {
      for (LoopId member : atoms_[static_cast<size_t>(AtomOf(op))]) {
        found.push_back(member);
        found_in_[static_cast<size_t>(member)] = closures_;
      }
    };
    add(l);
    for (size_t i = 0; i < found.size(); ++i) {
      for (LoopId next : readers ? links_.ReadersOf(found[i]) : links_.WritersOf(found[i])) {
        if (graph_.GroupOf(next) == g && found_in_[static_cast<size_t>(next)] != closures_) {
          add(next);
        }
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  static std::vector<LoopId> Without(const std::vector<LoopId>& all,
                                     const std::vector<LoopId>& part) {
    std::vector<LoopId> out;
    std::set_difference(all.begin(), all.end(), part.begin(), part.end(), std::back_inserter(out));
    return out;
  }

  // Whether a group reads from these ops, or they from it.
  bool Touches(const std::vector<LoopId>& part, int g, bool readers) const {
    return std::any_of(part.begin(), part.end(), [&](LoopId l) {
      const std::vector<LoopId>& linked = readers ? links_.ReadersOf(l) : links_.WritersOf(l);
      return std::any_of(linked.begin(), linked.end(),
                         [&](LoopId other) { return graph_.GroupOf(other) == g; });
    });
  }

  // Groups that may stand in the place of some, and the sum of their bounds.
  struct Try {
    double bound;
    Sets fresh;
  };

  Try MakeTry(std::vector<LoopId> one, std::vector<LoopId> other) const {
    double bound = Bound(one) + Bound(other);
    return {bound, {std::move(one), std::move(other)}};
  }

  // The most promising of `tries`, by bounds: the rest gains no more than the best change so far,
  // or there are many.
  absl::Status ConsiderBest(const std::vector<int>& old, std::vector<Try> tries, Change* best) {
    std::stable_sort(tries.begin(), tries.end(),
                     [](const Try& a, const Try& b) { return a.bound < b.bound; });
    double before = 0;
    for (int g : old) {
      ASSIGN_OR_RETURN(Figures figures, FiguresOf(g));
      before += figures.cost;
    }
    if (tries.size() > kMostTries) tries.resize(kMostTries);
    for (Try& t : tries) {
      if (t.bound >= before - std::max(best->gain, least_gain_)) break;
      RETURN_IF_ERROR(Consider(old, std::move(t.fresh), best));
    }
    return absl::OkStatus();
  }

  // Adds to `tries` what of one group may move to another one: an op with all in its group that
  // depends on it (`readers`) or on which it depends, if the other group is linked with these. With
  // `any` also if it is not, and all but these.
  void AddMoves(int from, int to, bool readers, bool any, std::set<std::vector<LoopId>>* seen,
                std::vector<Try>* tries) const {
    const std::vector<LoopId>& loops = graph_.loops(from);
    auto add = [&](const std::vector<LoopId>& part, std::vector<LoopId> rest) {
      if (!seen->insert(part).second) return;
      tries->push_back(MakeTry(std::move(rest), Union(part, graph_.loops(to))));
    };
    for (size_t i = 0; i < loops.size() && i < kMostBorder; ++i) {
      LoopId l = readers ? loops[loops.size() - 1 - i] : loops[i];
      std::vector<LoopId> part = Closure(from, l, readers);
      if (part.size() == loops.size()) continue;
      // Without a value between them they would run side by side.
      if (!any && !Touches(part, to, readers)) continue;
      std::vector<LoopId> rest = Without(loops, part);
      add(part, rest);
      if (any) add(rest, std::move(part));
    }
  }

  // Ops of one of two groups move to the other one, with all that must move with them; in the
  // thorough stage in either direction, whichever of the two then comes first.
  absl::Status Move(int a, int b, Change* best) {
    if (graph_.Before(b, a)) std::swap(a, b);
    const bool any = stage_ == Stage::kThorough;
    std::vector<Try> tries;
    std::set<std::vector<LoopId>> seen;
    AddMoves(a, b, /*readers=*/true, any, &seen, &tries);
    AddMoves(b, a, /*readers=*/false, any, &seen, &tries);
    if (any) {
      AddMoves(a, b, /*readers=*/false, any, &seen, &tries);
      AddMoves(b, a, /*readers=*/true, any, &seen, &tries);
    }
    return ConsiderBest({a, b}, std::move(tries), best);
  }

  // A group becomes two: some ops with all that depend on them, or on which they depend, and the
  // rest.
  absl::Status Cut(int g, Change* best) {
    std::vector<Try> tries;
    std::set<std::vector<LoopId>> seen;
    for (LoopId l : graph_.loops(g)) {
      for (bool readers : {true, false}) {
        std::vector<LoopId> part = Closure(g, l, readers);
        if (part.size() == graph_.loops(g).size()) continue;
        std::vector<LoopId> rest = Without(graph_.loops(g), part);
        if (!seen.insert(std::min(part, rest)).second) continue;
        tries.push_back(MakeTry(std::move(part), std::move(rest)));
      }
    }
    return ConsiderBest({g}, std::move(tries), best);
  }

  // The best groups of all ops of some groups, if these are few.
  absl::Status SolveWindow(const std::vector<int>& old, Change* best) {
    Sets atoms = AtomsOf(old);
    auto most = static_cast<size_t>(limits_.window_ops);
    if (atoms.size() < 3 || atoms.size() > most) return absl::OkStatus();
    auto paths = graph_.PathsBetween(old, atoms);
    if (!paths) return absl::OkStatus();
    auto set_of = [&](uint32_t mask) {
      std::vector<LoopId> loops;
      for (size_t i = 0; i < atoms.size(); ++i) {
        if ((mask >> i & 1) != 0) loops = Union(loops, atoms[i]);
      }
      return loops;
    };
    double before = 0;
    for (int g : old) {
      ASSIGN_OR_RETURN(Figures figures, FiguresOf(g));
      before += figures.cost;
    }
    ExactProblem problem{.paths = *std::move(paths),
                         .cost = [&](uint32_t mask) { return Cost(set_of(mask)); },
                         .bound = [&](uint32_t mask) { return Bound(set_of(mask)); },
                         .below = before - std::max(best->gain, least_gain_)};
    ASSIGN_OR_RETURN(ExactSolution solution, SolveExactly(problem));
    if (solution.groups.empty()) return absl::OkStatus();
    Sets fresh;
    for (uint32_t mask : solution.groups) fresh.push_back(set_of(mask));
    *best = {old, std::move(fresh), before - solution.cost};
    return absl::OkStatus();
  }

  // Groups that may change together with g: those it is linked with, nearest first.
  std::vector<int> NeighboursOf(int g) const {
    std::vector<int> writers = graph_.WritersOf(g);
    std::vector<int> readers = graph_.ReadersOf(g);
    auto before = [&](int a, int b) { return graph_.Before(a, b); };
    std::sort(writers.begin(), writers.end(), before);
    std::sort(readers.begin(), readers.end(), before);
    std::vector<int> all;
    for (size_t i = 0; i < std::max(writers.size(), readers.size()); ++i) {
      if (i < writers.size()) all.push_back(writers[writers.size() - 1 - i]);
      if (i < readers.size()) all.push_back(readers[i]);
      if (all.size() >= kMostNeighbours) break;
    }
    std::erase_if(all, [&](int n) { return !MayJoin(g, n); });
    return all;
  }

  // Those that run at about the same time and are not linked with it.
  std::vector<int> BesideOf(int g, const std::vector<int>& neighbours) const {
    std::vector<int> near = graph_.Near(g, kMostNear);
    std::erase_if(near, [&](int n) { return !MayJoin(g, n) || Contains(neighbours, n); });
    return near;
  }

  bool MayJoin(int a, int b) const {
    return CanChange(b) && IsConstantGroup(a) == IsConstantGroup(b);
  }

  // A group, those around it and the ops of all, ascending.
  struct Surroundings {
    std::vector<int> groups;  // the group first
    std::vector<LoopId> loops;
    std::vector<int> key;
  };

  // The key is equal for groups that look alike and have neighbours that do, and whose atoms are
  // cut alike: what is best for one of them is best for the others.
  Surroundings SurroundingsOf(int g, const std::vector<int>& neighbours,
                              const std::vector<int>& beside) {
    Surroundings s{.groups = {g}, .loops = {}, .key = {}};
    s.groups.insert(s.groups.end(), neighbours.begin(), neighbours.end());
    s.groups.insert(s.groups.end(), beside.begin(), beside.end());
    for (int member : s.groups) {
      const std::vector<LoopId>& of = graph_.loops(member);
      s.loops.insert(s.loops.end(), of.begin(), of.end());
    }
    std::sort(s.loops.begin(), s.loops.end());
    s.key = evaluator_->Key(s.loops);
    for (LoopId l : s.loops) {
      auto at = std::find(s.groups.begin(), s.groups.end(), graph_.GroupOf(l));
      s.key.push_back(static_cast<int>(at - s.groups.begin()));
    }
    if (evaluator_->rules().forced().empty() && !whole_nodes_) return s;
    for (LoopId l : s.loops) {
      LoopId first = atoms_[static_cast<size_t>(AtomOf(l))].front();
      auto at = std::lower_bound(s.loops.begin(), s.loops.end(), first);
      s.key.push_back(static_cast<int>(at - s.loops.begin()));
    }
    return s;
  }

  // A change in positions of groups and ops of its surroundings; no groups: nothing gains.
  struct Recipe {
    std::vector<size_t> groups;
    std::vector<std::vector<size_t>> fresh;
    double gain = 0;
  };

  static Recipe RecipeOf(const Change& change, const Surroundings& around) {
    Recipe recipe{.groups = {}, .fresh = {}, .gain = change.gain};
    for (int g : change.old) {
      auto at = std::find(around.groups.begin(), around.groups.end(), g);
      recipe.groups.push_back(static_cast<size_t>(at - around.groups.begin()));
    }
    for (const std::vector<LoopId>& group : change.fresh) {
      recipe.fresh.emplace_back();
      for (LoopId l : group) {
        auto at = std::lower_bound(around.loops.begin(), around.loops.end(), l);
        recipe.fresh.back().push_back(static_cast<size_t>(at - around.loops.begin()));
      }
    }
    return recipe;
  }

  static Change Follow(const Recipe& recipe, const Surroundings& around) {
    Change change{.old = {}, .fresh = {}, .gain = recipe.gain};
    for (size_t i : recipe.groups) change.old.push_back(around.groups[i]);
    for (const std::vector<size_t>& positions : recipe.fresh) {
      change.fresh.emplace_back();
      for (size_t i : positions) change.fresh.back().push_back(around.loops[i]);
    }
    return change;
  }

  absl::Status Improve(int g) {
    if (!CanChange(g)) return absl::OkStatus();
    // Where nothing more is evaluated, a large graph still has many changes to rule out.
    RETURN_IF_ERROR(evaluator_->CheckCancel());
    tried_.clear();
    std::vector<int> neighbours = NeighboursOf(g);
    std::vector<int> beside;
    if (stage_ != Stage::kJoins) beside = BesideOf(g, neighbours);
    Surroundings around = SurroundingsOf(g, neighbours, beside);
    auto known = recipes_.find(around.key);
    if (known != recipes_.end()) {
      if (known->second.groups.empty()) return absl::OkStatus();
      Change change = Follow(known->second, around);
      // Further away things may differ.
      if (graph_.CanReplace(change.old, change.fresh)) {
        Commit(change);
        return absl::OkStatus();
      }
    }
    Change best;
    if (stage_ != Stage::kJoins) RETURN_IF_ERROR(Cut(g, &best));
    for (const std::vector<int>* others : {&neighbours, &beside}) {
      for (int n : *others) {
        std::vector<LoopId> both = Union(graph_.loops(g), graph_.loops(n));
        RETURN_IF_ERROR(Consider({g, n}, {std::move(both)}, &best));
        if (stage_ == Stage::kThorough || (stage_ == Stage::kPromised && others == &neighbours)) {
          RETURN_IF_ERROR(Move(g, n, &best));
        }
      }
    }
    if (stage_ == Stage::kThorough && best.gain == 0)
      RETURN_IF_ERROR(SolveAround(g, neighbours, &best));
    RETURN_IF_ERROR(RecordRefused(best));
    if (known == recipes_.end()) recipes_.emplace(around.key, RecipeOf(best, around));
    if (best.gain > 0) Commit(best);
    return absl::OkStatus();
  }

  // What no change of two groups reaches: three at once, and few ops exactly.
  absl::Status SolveAround(int g, const std::vector<int>& neighbours, Change* best) {
    RETURN_IF_ERROR(SolveWindow({g}, best));
    for (size_t i = 0; i < neighbours.size(); ++i) {
      RETURN_IF_ERROR(SolveWindow({g, neighbours[i]}, best));
      for (size_t j = 0; j < i; ++j) {
        std::vector<int> three = {g, neighbours[i], neighbours[j]};
        std::vector<LoopId> all =
            Union(graph_.loops(g), Union(graph_.loops(three[1]), graph_.loops(three[2])));
        RETURN_IF_ERROR(Consider(three, {std::move(all)}, best));
        RETURN_IF_ERROR(SolveWindow(three, best));
      }
    }
    return absl::OkStatus();
  }

  void Commit(Change& change) {
    std::set<int> around;
    for (int g : change.old) {
      for (int n : NeighboursOf(g)) around.insert(n);
    }
    Record(change);
    for (int g : graph_.Replace(change.old, std::move(change.fresh))) Wake(g);
    for (int n : around) {
      if (graph_.alive(n)) Wake(n);
    }
  }

  // Groups that became one. What is cut or moved shows in the pairs of the groups that are left.
  void Record(const Change& change) {
    if (change.fresh.size() != 1 || change.old.size() < 2) return;
    std::vector<int> old = change.old;
    std::sort(old.begin(), old.end(), [&](int a, int b) { return graph_.Before(a, b); });
    std::vector<LoopId> rest;
    for (size_t i = 1; i < old.size(); ++i) rest = Union(rest, graph_.loops(old[i]));
    considered_.push_back({graph_.loops(old[0]), std::move(rest), {}});
  }

  static std::vector<int> SidesOf(const std::vector<LoopId>& first,
                                  const std::vector<LoopId>& second) {
    std::vector<int> sides = first;
    sides.push_back(-1);
    sides.insert(sides.end(), second.begin(), second.end());
    return sides;
  }

  // Joins of two groups that were looked at and are not `best`, each once.
  absl::Status RecordRefused(const Change& best) {
    const std::vector<std::pair<int, int>> tried = std::exchange(tried_, {});
    for (auto [a, b] : tried) {
      if (best.fresh.size() == 1 && best.old == std::vector<int>{a, b}) continue;
      if (graph_.Before(b, a)) std::swap(a, b);
      std::vector<int> sides = SidesOf(graph_.loops(a), graph_.loops(b));
      if (refused_.contains(sides)) continue;
      ASSIGN_OR_RETURN(Refusal refusal, WhyNot(a, b));
      if (refusal.empty()) continue;
      refused_.insert(std::move(sides));
      considered_.push_back({graph_.loops(a), graph_.loops(b), std::move(refusal)});
    }
    return absl::OkStatus();
  }

  // Why two groups, which are there, do not become one now; empty where nobody has looked, or where
  // it is memory that decides.
  absl::StatusOr<Refusal> WhyNot(int a, int b) {
    std::vector<LoopId> both = Union(graph_.loops(a), graph_.loops(b));
    if (both.size() > kMostOps) {
      return Refuse(RefusalCode::kLarge, both.size(), " loop ops; one kernel has at most ",
                    kMostOps);
    }
    if (std::string wide = TooWide(program_, both); !wide.empty()) {
      return Refuse(RefusalCode::kWide, wide);
    }
    if (!evaluator_->IsKnown(both)) return Refusal();
    ASSIGN_OR_RETURN(const GroupVerdict* together, evaluator_->Evaluate(both));
    if (!together->refusal.empty()) return together->refusal;
    ASSIGN_OR_RETURN(const GroupVerdict* first, evaluator_->Evaluate(graph_.loops(a)));
    ASSIGN_OR_RETURN(const GroupVerdict* second, evaluator_->Evaluate(graph_.loops(b)));
    if (objective_.run_bytes.has_value() || !first->refusal.empty() || !second->refusal.empty()) {
      return Refusal();
    }
    Refusal loss = WithoutGain(*first, *second, *together);
    if (!loss.empty()) return loss;
    if (!graph_.CanReplace({a, b}, {both})) {
      return Refuse(RefusalCode::kCyclic, "another group lies between the two");
    }
    return Refuse(
        RefusalCode::kSuperseded, "would gain ",
        MicrosecondsText(first->weighed_us() + second->weighed_us() - together->weighed_us()),
        "; a change that gains more was made instead");
  }

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

}  // namespace

absl::StatusOr<Grouping> SearchGroups(const Grouping& nodes, const Grouping& start,
                                      const Objective& objective, const PlanOptions& options,
                                      const std::map<NodeId, std::string>& alone,
                                      const SearchLimits& limits, GroupEvaluator* evaluator) {
  OpLinks links(evaluator->program());
  return Improver(nodes, objective, options, alone, limits, evaluator, links, start).Run();
}

}  // namespace fusion
