#include "core/plan/cost/pin.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/plan/sets/group_graph.h"
#include "core/plan/sets/grouping.h"
#include "core/plan/sets/loop_sets.h"
#include "core/schedule/tiles/legal_choice.h"
#include "core/schedule/tiles/run_tiles.h"

namespace fusion {
namespace {

// -1: none.
DimId FindDim(const Smg& smg, const std::string& name) {
  for (size_t d = 0; d < smg.dims.size(); ++d) {
    if (smg.dims[d].name == name) return static_cast<DimId>(d);
  }
  return -1;
}

// Adapts tiles of a family's kernel, as RunTile does at run time, for dims that are shorter than in
// the largest member. `extents`: the extents of that member.
void FitGrid(const std::vector<int64_t>& extents, const Smg& smg, int threads,
             std::vector<GridDim>* grid) {
  auto tiles = [&](const GridDim& g) { return (smg.dim(g.dim).extent + g.tile - 1) / g.tile; };
  std::vector<size_t> open;
  for (size_t g = 0; g < grid->size(); ++g) {
    const auto d = static_cast<size_t>((*grid)[g].dim);
    const bool varies = d < extents.size() && extents[d] != smg.dims[d].extent;
    if (varies && (*grid)[g].tile > 1) open.push_back(g);
  }
  std::stable_sort(open.begin(), open.end(),
                   [&](size_t a, size_t b) { return (*grid)[a].tile > (*grid)[b].tile; });
  for (size_t g : open) {
    int64_t others = 1;
    for (size_t other = 0; other < grid->size(); ++other) {
      if (other != g) others *= tiles((*grid)[other]);
    }
    GridDim& at = (*grid)[g];
    at.tile = RunTile(smg.dim(at.dim).extent, at.tile, /*step=*/1, others, threads);
  }
}

// Checks that every op is in exactly one group.
absl::Status CheckCover(const PlanLock& lock, const Program& program) {
  std::vector<int> group_of(program.ops.size(), -1);
  for (size_t g = 0; g < lock.groups.size(); ++g) {
    const std::vector<int>& ops = lock.groups[g].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      auto field = [&] { return StrCat("lock.groups[", g, "].ops[", i, "]: ", ops[i]); };
      if (ops[i] < 0 || static_cast<size_t>(ops[i]) >= program.ops.size()) {
        return InvalidArgument(field(), "; the program has ", program.ops.size(), " loop ops");
      }
      if (program.op(ops[i]).IsAlias()) {
        return InvalidArgument(field(), " is a view, which no kernel computes");
      }
      if (i > 0 && ops[i] <= ops[i - 1]) return InvalidArgument(field(), " is not ascending");
      int& other = group_of[static_cast<size_t>(ops[i])];
      if (other >= 0) return InvalidArgument(field(), " is in group ", other, " too");
      other = static_cast<int>(g);
    }
  }
  for (size_t l = 0; l < program.ops.size(); ++l) {
    if (group_of[l] >= 0 || program.ops[l].IsAlias()) continue;
    return InvalidArgument("lock.groups: op ", l, " ", program.ops[l].label, " is in none");
  }
  return absl::OkStatus();
}

// Ops with one tiling: a group, or a sequential phase (turn) of one.
struct Unit {
  size_t group = 0;
  int turn = -1;  // -1: the whole group
  std::vector<LoopId> ops;
  int choice = 0;
  int body = -1;

  std::string Name() const {
    return turn < 0 ? StrCat("lock.groups[", group, "]")
                    : StrCat("lock.groups[", group, "].choice.turns[", turn, "]");
  }
};

// Adds the turns of a group and checks that they hold each of its ops once.
absl::Status AddTurns(const PlanLock& lock, size_t g, std::vector<Unit>* units) {
  const LockedGroup& group = lock.groups[g];
  std::vector<bool> seen(group.ops.size(), false);
  const std::vector<LockedSequentialPhase>& turns =
      lock.choices[static_cast<size_t>(group.choice)].turns;
  for (size_t t = 0; t < turns.size(); ++t) {
    Unit unit{.group = g, .turn = static_cast<int>(t), .ops = {}, .choice = turns[t].choice};
    for (int op : turns[t].ops) {
      auto field = [&] { return StrCat("choice.turns[", t, "].ops: ", op); };
      if (op < 0 || static_cast<size_t>(op) >= group.ops.size()) {
        return InvalidArgument(field(), "; the group has ", group.ops.size(), " ops");
      }
      auto at = static_cast<size_t>(op);
      if (seen[at]) return InvalidArgument(field(), " is in two turns, or twice in one");
      seen[at] = true;
      unit.ops.push_back(group.ops[at]);
    }
    std::sort(unit.ops.begin(), unit.ops.end());
    units->push_back(std::move(unit));
  }
  auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing == seen.end()) return absl::OkStatus();
  return InvalidArgument("choice.turns: op ", missing - seen.begin(), " of the group is in none");
}

absl::StatusOr<std::vector<Unit>> UnitsOf(const PlanLock& lock) {
  std::vector<Unit> units;
  for (size_t g = 0; g < lock.groups.size(); ++g) {
    const LockedGroup& group = lock.groups[g];
    if (group.body >= 0 || lock.choices[static_cast<size_t>(group.choice)].turns.empty()) {
      units.push_back({.group = g, .ops = group.ops, .choice = group.choice, .body = group.body});
      continue;
    }
    absl::Status status = AddTurns(lock, g, &units);
    if (!status.ok()) return Annotate(status, StrCat("lock.groups[", g, "]"));
  }
  return units;
}

// Checks that every unit runs after those that it reads from. Then no unit is between the ops of
// another one.
absl::Status CheckOrder(const std::vector<Unit>& units, const Program& program) {
  OpLinks links(program);
  std::vector<size_t> unit_of(program.ops.size(), 0);
  for (size_t u = 0; u < units.size(); ++u) {
    for (LoopId l : units[u].ops) unit_of[static_cast<size_t>(l)] = u;
  }
  for (size_t u = 0; u < units.size(); ++u) {
    for (LoopId l : units[u].ops) {
      for (LoopId writer : links.WritersOf(l)) {
        const Unit& from = units[unit_of[static_cast<size_t>(writer)]];
        if (unit_of[static_cast<size_t>(writer)] <= u) continue;
        return InvalidArgument(units[u].Name(), ": op ", l, " reads from op ", writer, " of ",
                               from.group == units[u].group ? StrCat("turn ", from.turn)
                                                            : StrCat("group ", from.group),
                               ", which runs behind it");
      }
    }
  }
  return absl::OkStatus();
}

// Values that are known before the first run must not depend on a run.
absl::Status CheckConstants(const std::vector<LoopId>& loops, const GroupEvaluator& evaluator) {
  if (evaluator.AreConstant(loops)) return absl::OkStatus();
  for (LoopId l : loops) {
    ValueId v = evaluator.program().op(l).output;
    if (!evaluator.IsConstant(v) || !evaluator.NeededOutside(v, loops)) continue;
    return InvalidArgument("op ", l, " computes from weights alone what other groups read; ",
                           "it cannot run with ops that are not");
  }
  return absl::OkStatus();
}

absl::Status PinRepeat(const Unit& unit, const PlanLock& lock, GroupEvaluator* evaluator) {
  if (unit.body < 0) return InvalidArgument("an op is a repeat; expected a body");
  if (unit.ops.size() > 1 || !HasRepeat(evaluator->program(), unit.ops)) {
    return InvalidArgument("a body; expected one op, a repeat");
  }
  const LockedBody& body = lock.bodies[static_cast<size_t>(unit.body)];
  absl::Status pinned =
      evaluator->PinRepeat(unit.ops[0], std::make_shared<const PlanLock>(LockOf(body, lock.use)));
  return pinned.ok() ? pinned : Annotate(pinned, StrCat("lock.bodies[", unit.body, "]"));
}

absl::Status PinUnit(const Unit& unit, const PlanLock& lock, GroupEvaluator* evaluator) {
  const std::vector<LoopId>& loops = unit.ops;
  if (loops.empty()) return InvalidArgument("no ops");
  if (unit.body >= 0 || HasRepeat(evaluator->program(), loops)) {
    return PinRepeat(unit, lock, evaluator);
  }
  if (loops.size() > kMostOps) {
    return InvalidArgument(loops.size(), " ops; one kernel has at most ", kMostOps);
  }
  std::string wide = TooWide(evaluator->program(), loops);
  if (loops.size() > 1 && !wide.empty()) return InvalidArgument(wide);
  RETURN_IF_ERROR(CheckConstants(loops, *evaluator));
  return evaluator->Pin(loops, lock.choices[static_cast<size_t>(unit.choice)]);
}

// Joins the pinned phases of each launch.
absl::Status PinLaunches(const std::vector<Unit>& units, const PlanLock& lock,
                         const Grouping& grouping, GroupEvaluator* evaluator) {
  for (size_t u = 0; u < units.size();) {
    const size_t end = EndOfLaunch(grouping.follows, u, units.size());
    if (end > u + 1) {
      SequentialPhases sequence;
      for (size_t i = u; i < end; ++i) {
        sequence.push_back(units[i].ops);
        if (!evaluator->AreConstant(sequence.back())) continue;
        return InvalidArgument(units[i].Name(), ": computed from weights alone, once");
      }
      std::string wide = TooWide(evaluator->program(), UnionOf(sequence));
      if (!wide.empty()) return InvalidArgument("lock.groups[", units[u].group, "]: ", wide);
      const LockedGroup& group = lock.groups[units[u].group];
      absl::Status pinned = evaluator->PinSequential(
          sequence, lock.choices[static_cast<size_t>(group.choice)].pipelines);
      if (!pinned.ok()) {
        return Annotate(pinned, StrCat("lock.groups[", units[u].group, "].choice"));
      }
    }
    u = end;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DimId> DimOf(std::string_view field, const std::string& name, const Smg& smg) {
  DimId d = FindDim(smg, name);
  if (d >= 0) return d;
  return InvalidArgument(field, ": no dim ", QuoteShort(name), "; the ops have ",
                         StrJoin(smg.dims, ", ", [](const SmgDim& dim) { return dim.name; }));
}

LockedTiling TilingOf(const FusionGroup& group, const Choice& choice) {
  auto name = [&](DimId d) { return group.smg.dim(d).name; };
  LockedTiling tiling;
  for (const SmgDim& d : group.smg.dims) tiling.extents.push_back(d.extent);
  for (const GridDim& g : choice.grid) tiling.grid.push_back({name(g.dim), g.tile});
  if (choice.temporal >= 0) {
    tiling.streamed = LockedTile{name(choice.temporal), choice.temporal_tile};
  }
  std::map<int, const ProductChoice*> products;  // by op of the group
  for (const auto& [op, product] : choice.products) {
    const StreamedGroup* form = choice.streamed.get();
    int source = form == nullptr ? op : form->ops[static_cast<size_t>(op)].source;
    products.emplace(source, &product);
  }
  for (const auto& [op, product] : products) {
    tiling.products.push_back({.op = op,
                               .swap = product->swap,
                               .rows = product->block.m,
                               .columns = product->block.n,
                               .stage_rows = product->stage_rows});
  }
  return tiling;
}

absl::StatusOr<Choice> ChoiceFrom(const LockedTiling& tiling, const FusionGroup& group,
                                  const DeviceSpec& device, bool bitwise, LockUse use) {
  const Smg& smg = group.smg;
  auto length = [&](DimId d, int64_t tile) {
    return use == LockUse::kFit ? std::min(tile, std::max<int64_t>(1, smg.dim(d).extent)) : tile;
  };
  Choice choice;
  if (use == LockUse::kMember) choice.most.assign(tiling.extents.begin(), tiling.extents.end());
  for (const LockedTile& t : tiling.grid) {
    ASSIGN_OR_RETURN(DimId d, DimOf("grid", t.dim, smg));
    choice.grid.push_back({d, length(d, t.tile)});
  }
  if (use == LockUse::kFit) FitGrid(tiling.extents, smg, device.threads, &choice.grid);
  for (const LockedProduct& p : tiling.products) {
    bool known = p.op >= 0 && static_cast<size_t>(p.op) < smg.ops.size();
    if (!known || Classify(group, p.op) != OpClass::kProduct) {
      return InvalidArgument("products: op ", p.op, " is no matrix product");
    }
    ProductChoice product{.swap = p.swap, .block = {p.rows, p.columns}, .stage_rows = p.stage_rows};
    if (!choice.products.emplace(p.op, product).second) {
      return InvalidArgument("products: op ", p.op, " twice");
    }
  }
  if (tiling.streamed.has_value()) {
    ASSIGN_OR_RETURN(DimId d, DimOf("streamed", tiling.streamed->dim, smg));
    Refusal why;
    std::shared_ptr<const StreamedGroup> form = StreamGroup(group, d, &why);
    if (form == nullptr) {
      return InvalidArgument("streamed: dim ", smg.dim(d).name, ": ", why.ToString());
    }
    choice = choice.Streaming(std::move(form), length(d, tiling.streamed->tile));
  }
  RETURN_IF_ERROR(CheckChoice(group, choice, device, bitwise));
  return choice;
}

absl::StatusOr<Grouping> PinGroups(const PlanLock& lock, GroupEvaluator* evaluator) {
  RETURN_IF_ERROR(CheckCover(lock, evaluator->program()));
  absl::Status sound = CheckChoices(lock);
  if (!sound.ok()) return InvalidArgument("lock.", Message(sound));
  ASSIGN_OR_RETURN(std::vector<Unit> units, UnitsOf(lock));
  RETURN_IF_ERROR(CheckOrder(units, evaluator->program()));
  Grouping grouping;
  std::map<std::vector<int>, size_t> first_with;  // by key: a unit that looks the same
  for (size_t u = 0; u < units.size(); ++u) {
    const Unit& unit = units[u];
    auto [first, fresh] = first_with.emplace(evaluator->Key(unit.ops), u);
    const Unit& equal = units[first->second];
    if (!fresh && lock.use != LockUse::kFit) {
      for (auto [field, has, first_has] : {std::tuple(".choice: ", unit.choice, equal.choice),
                                           std::tuple(".body: ", unit.body, equal.body)}) {
        if (has == first_has) continue;
        return InvalidArgument(unit.Name(), field, has, "; group ", equal.group,
                               " is equal and has ", first_has);
      }
    }
    if (fresh) {
      absl::Status pinned = PinUnit(unit, lock, evaluator);
      if (!pinned.ok()) return Annotate(pinned, unit.Name());
    }
    grouping.groups.push_back(unit.ops);
    grouping.follows.push_back(unit.turn > 0);
  }
  RETURN_IF_ERROR(PinLaunches(units, lock, grouping, evaluator));
  return grouping;
}

PlanLock DecisionsOf(const PlannedModel& model) {
  PlanLock lock;
  lock.choices = model.choices;
  std::map<const PlannedModel*, int> body_of;  // equal repeats have one
  for (size_t g = 0; g < model.groups.size(); ++g) {
    // Packs a weight, which follows from the kernels that read it; or runs in a loop.
    if (model.groups[g].empty()) continue;
    auto body = model.bodies.find(static_cast<int>(g));
    if (body == model.bodies.end()) {
      lock.groups.push_back({.ops = model.groups[g], .choice = model.choice_of[g]});
      continue;
    }
    auto [it, fresh] =
        body_of.try_emplace(body->second.get(), static_cast<int>(lock.bodies.size()));
    if (fresh) {
      PlanLock inner = DecisionsOf(*body->second);
      lock.bodies.push_back(
          {std::move(inner.groups), std::move(inner.choices), std::move(inner.bodies)});
    }
    lock.groups.push_back({.ops = model.groups[g], .body = it->second});
  }
  for (size_t v = 0; v < model.variants.size(); ++v) {
    PlanLock own = DecisionsOf(model.variants[v]);
    lock.variants.push_back(
        {model.plan.variants[v].most,
         {std::move(own.groups), std::move(own.choices), std::move(own.bodies)}});
  }
  return lock;
}

std::shared_ptr<const PlanLock> LockFor(const PlannedModel& model, LockUse use) {
  PlanLock lock = DecisionsOf(model);
  lock.use = use;
  return std::make_shared<const PlanLock>(std::move(lock));
}

}  // namespace fusion
