#include "core/plan/search/search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/contains.h"
#include "core/plan/cost/gain.h"
#include "core/plan/search/improver.h"
#include "core/plan/sets/exact.h"
#include "core/plan/sets/loop_sets.h"

namespace fusion {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// With Objective::run_bytes: a byte between kernels counts as this many microseconds, more than any
// time that storing it can save.
constexpr double kKeptByteUs = 1e3;
// The same for a byte that a kernel holds above run_bytes. Larger, since no single change may bring
// a kernel below the limit.
constexpr double kOverByteUs = 8 * kKeptByteUs;
// Budget of loop ops to schedule for changes that the bounds promise. Models stay far below; a
// graph without equal parts would otherwise take minutes.
constexpr int64_t kLeastEffort = 20000;
constexpr int64_t kEffortOfAnOp = 8;
// The least gain of changes that the bounds do not promise, as a fraction of an average group's
// cost.
constexpr double kThoroughGain = 0.01;
// Limit on splits of a group, or moves between two, that are estimated: the most promising by their
// bounds.
constexpr size_t kMostTries = 20;
// Limit on first and last ops of a group that may start a move.
constexpr size_t kMostBorder = 32;
// Limit on groups before and after a group that may run side by side with it.
constexpr int kMostNear = 4;
// Limit on linked groups, nearest first: a mask may be read by every layer.
constexpr size_t kMostNeighbours = 16;

using Sets = std::vector<std::vector<LoopId>>;

}  // namespace

absl::StatusOr<Grouping> Improver::Run() {
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

int64_t Improver::EffortOf(Stage stage) const {
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

void Improver::AddAtom(const std::vector<LoopId>& loops, bool frozen) {
  for (LoopId l : loops) atom_of_[static_cast<size_t>(l)] = static_cast<int>(atoms_.size());
  atoms_.push_back(loops);
  frozen_.push_back(frozen);
}

void Improver::Wake(int g) {
  if (waiting_.insert(g).second) dirty_.push_back(g);
}

absl::Status Improver::WakeAll() {
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

absl::StatusOr<double> Improver::Cost(const std::vector<LoopId>& loops) {
  if (loops.size() > kMostOps || !TooWide(program_, loops).empty()) return kInfinite;
  if (evaluator_->scheduled_ops() >= effort_ && !evaluator_->IsKnown(loops)) {
    return kInfinite;
  }
  ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_->Evaluate(loops));
  if (!verdict->refusal.empty()) return kInfinite;
  return verdict->weighed_us() + KeptUs(loops) + OverUs(*verdict);
}

double Improver::Bound(const std::vector<LoopId>& loops) const {
  // The bound does not hold for registered kernels.
  if (evaluator_->registered().Of(loops) != nullptr) return KeptUs(loops);
  return bound_.Of(loops) * evaluator_->rules().LeastFactor(loops) + KeptUs(loops);
}

double Improver::KeptUs(const std::vector<LoopId>& loops) const {
  if (!objective_.run_bytes.has_value()) return 0;
  return kKeptByteUs * static_cast<double>(evaluator_->KeptBytes(loops));
}

double Improver::OverUs(const GroupVerdict& verdict) const {
  int64_t over = verdict.run_bytes - objective_.run_bytes.value_or(verdict.run_bytes);
  return over <= 0 ? 0 : kOverByteUs * static_cast<double>(over);
}

absl::StatusOr<Improver::Figures> Improver::FiguresOf(int g) {
  auto i = static_cast<size_t>(g);
  if (figures_.size() <= i) figures_.resize(i + 1);
  if (figures_[i].cost < 0) {
    ASSIGN_OR_RETURN(double cost, Cost(graph_.loops(g)));
    figures_[i] = {.cost = cost, .bound = Bound(graph_.loops(g))};
  }
  return figures_[i];
}

absl::Status Improver::Consider(std::vector<int> old, Sets fresh, Change* best) {
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
  // Cached results first: they may decide.
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

absl::Status Improver::JoinFavoured() {
  for (const auto* matches : {&evaluator_->rules().favoured(), &evaluator_->registered().sets()}) {
    RETURN_IF_ERROR(JoinMatches(*matches));
  }
  return absl::OkStatus();
}

absl::Status Improver::JoinMatches(const Sets& matches) {
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
    // Joins all of their groups, or the match alone and the rest of each group.
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

Sets Improver::AtomsOf(const std::vector<int>& groups) const {
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

std::vector<LoopId> Improver::Closure(int g, LoopId l, bool readers) const {
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

std::vector<LoopId> Improver::Without(const std::vector<LoopId>& all,
                                      const std::vector<LoopId>& part) {
  std::vector<LoopId> out;
  std::set_difference(all.begin(), all.end(), part.begin(), part.end(), std::back_inserter(out));
  return out;
}

bool Improver::Touches(const std::vector<LoopId>& part, int g, bool readers) const {
  return std::any_of(part.begin(), part.end(), [&](LoopId l) {
    const std::vector<LoopId>& linked = readers ? links_.ReadersOf(l) : links_.WritersOf(l);
    return std::any_of(linked.begin(), linked.end(),
                       [&](LoopId other) { return graph_.GroupOf(other) == g; });
  });
}

Improver::Try Improver::MakeTry(std::vector<LoopId> one, std::vector<LoopId> other) const {
  double bound = Bound(one) + Bound(other);
  return {bound, {std::move(one), std::move(other)}};
}

absl::Status Improver::ConsiderBest(const std::vector<int>& old, std::vector<Try> tries,
                                    Change* best) {
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

void Improver::AddMoves(int from, int to, bool readers, bool any,
                        std::set<std::vector<LoopId>>* seen, std::vector<Try>* tries) const {
  const std::vector<LoopId>& loops = graph_.loops(from);
  auto add = [&](const std::vector<LoopId>& part, std::vector<LoopId> rest) {
    if (!seen->insert(part).second) return;
    tries->push_back(MakeTry(std::move(rest), Union(part, graph_.loops(to))));
  };
  for (size_t i = 0; i < loops.size() && i < kMostBorder; ++i) {
    LoopId l = readers ? loops[loops.size() - 1 - i] : loops[i];
    std::vector<LoopId> part = Closure(from, l, readers);
    if (part.size() == loops.size()) continue;
    // Groups with no value between them would run side by side.
    if (!any && !Touches(part, to, readers)) continue;
    std::vector<LoopId> rest = Without(loops, part);
    add(part, rest);
    if (any) add(rest, std::move(part));
  }
}

absl::Status Improver::Move(int a, int b, Change* best) {
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

absl::Status Improver::Cut(int g, Change* best) {
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

absl::Status Improver::SolveWindow(const std::vector<int>& old, Change* best) {
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

std::vector<int> Improver::NeighboursOf(int g) const {
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

std::vector<int> Improver::BesideOf(int g, const std::vector<int>& neighbours) const {
  std::vector<int> near = graph_.Near(g, kMostNear);
  std::erase_if(near, [&](int n) { return !MayJoin(g, n) || Contains(neighbours, n); });
  return near;
}

bool Improver::MayJoin(int a, int b) const {
  return CanChange(b) && IsConstantGroup(a) == IsConstantGroup(b);
}

Improver::Surroundings Improver::SurroundingsOf(int g, const std::vector<int>& neighbours,
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

Improver::Recipe Improver::RecipeOf(const Change& change, const Surroundings& around) {
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

Improver::Change Improver::Follow(const Recipe& recipe, const Surroundings& around) {
  Change change{.old = {}, .fresh = {}, .gain = recipe.gain};
  for (size_t i : recipe.groups) change.old.push_back(around.groups[i]);
  for (const std::vector<size_t>& positions : recipe.fresh) {
    change.fresh.emplace_back();
    for (size_t i : positions) change.fresh.back().push_back(around.loops[i]);
  }
  return change;
}

absl::Status Improver::Improve(int g) {
  if (!CanChange(g)) return absl::OkStatus();
  // Even if nothing more is evaluated, ruling out changes takes long for a large graph.
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
    // Groups further away may differ.
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

absl::Status Improver::SolveAround(int g, const std::vector<int>& neighbours, Change* best) {
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

void Improver::Commit(Change& change) {
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

void Improver::Record(const Change& change) {
  if (change.fresh.size() != 1 || change.old.size() < 2) return;
  std::vector<int> old = change.old;
  std::sort(old.begin(), old.end(), [&](int a, int b) { return graph_.Before(a, b); });
  std::vector<LoopId> rest;
  for (size_t i = 1; i < old.size(); ++i) rest = Union(rest, graph_.loops(old[i]));
  considered_.push_back({graph_.loops(old[0]), std::move(rest), {}});
}

std::vector<int> Improver::SidesOf(const std::vector<LoopId>& first,
                                   const std::vector<LoopId>& second) {
  std::vector<int> sides = first;
  sides.push_back(-1);
  sides.insert(sides.end(), second.begin(), second.end());
  return sides;
}

absl::Status Improver::RecordRefused(const Change& best) {
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

absl::StatusOr<Refusal> Improver::WhyNot(int a, int b) {
  std::vector<LoopId> both = Union(graph_.loops(a), graph_.loops(b));
  if (both.size() > kMostOps) {
    return Refuse(RefusalCode::kLarge, both.size(), " loop ops; one kernel has at most ", kMostOps);
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

absl::StatusOr<Grouping> SearchGroups(const Grouping& nodes, const Grouping& start,
                                      const Objective& objective, const PlanOptions& options,
                                      const std::map<NodeId, std::string>& unfused_nodes,
                                      const SearchLimits& limits, GroupEvaluator* evaluator) {
  OpLinks links(evaluator->program());
  return Improver(nodes, objective, options, unfused_nodes, limits, evaluator, links, start).Run();
}

}  // namespace fusion
