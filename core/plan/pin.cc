#include "core/plan/pin.h"

#include <map>

#include "core/plan/group_graph.h"
#include "core/plan/grouping.h"
#include "core/plan/planner.h"
#include "core/schedule/legal_choice.h"

namespace fusion {
namespace {

// -1 if there is none.
DimId FindDim(const Smg& smg, const std::string& name) {
  for (size_t d = 0; d < smg.dims.size(); ++d) {
    if (smg.dims[d].name == name) return static_cast<DimId>(d);
  }
  return -1;
}

// Checks that every op is in one group.
absl::Status CheckCover(const PlanLock& lock, const Program& program) {
  std::vector<int> group_of(program.ops.size(), -1);
  for (size_t g = 0; g < lock.groups.size(); ++g) {
    const std::vector<int>& ops = lock.groups[g].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      auto field = [&] { return StrCat("lock.groups[", g, "].ops[", i, "]: ", ops[i]); };
      if (ops[i] < 0 || static_cast<size_t>(ops[i]) >= program.ops.size()) {
        return InvalidArgument(field(), "; the program has ", program.ops.size(), " loop ops");
      }
      if (program.op(ops[i]).kind == LoopOp::kReinterpret) {
        return InvalidArgument(field(), " is a view, which no kernel computes");
      }
      if (i > 0 && ops[i] <= ops[i - 1]) return InvalidArgument(field(), " is not ascending");
      int& other = group_of[static_cast<size_t>(ops[i])];
      if (other >= 0) return InvalidArgument(field(), " is in group ", other, " too");
      other = static_cast<int>(g);
    }
  }
  for (size_t l = 0; l < program.ops.size(); ++l) {
    if (group_of[l] >= 0 || program.ops[l].kind == LoopOp::kReinterpret) continue;
    return InvalidArgument("lock.groups: op ", l, " ", program.ops[l].label, " is in none");
  }
  return absl::OkStatus();
}

// Checks that every group runs behind those it reads from; then none of them lies between the ops
// of another.
absl::Status CheckOrder(const PlanLock& lock, const Program& program) {
  OpLinks links(program);
  std::vector<size_t> group_of(program.ops.size(), 0);
  for (size_t g = 0; g < lock.groups.size(); ++g) {
    for (int l : lock.groups[g].ops) group_of[static_cast<size_t>(l)] = g;
  }
  for (size_t g = 0; g < lock.groups.size(); ++g) {
    for (int l : lock.groups[g].ops) {
      for (LoopId writer : links.WritersOf(l)) {
        size_t from = group_of[static_cast<size_t>(writer)];
        if (from <= g) continue;
        return InvalidArgument("lock.groups[", g, "]: op ", l, " reads from op ", writer,
                               " of group ", from, ", which runs behind it");
      }
    }
  }
  return absl::OkStatus();
}

// What is known before the first run must not wait for one.
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

absl::Status PinGroup(const LockedGroup& group, const PlanLock& lock, GroupEvaluator* evaluator) {
  const std::vector<LoopId>& loops = group.ops;
  if (loops.empty()) return InvalidArgument("no ops");
  if (loops.size() > kMostOps) {
    return InvalidArgument(loops.size(), " ops; one kernel has at most ", kMostOps);
  }
  std::string wide = TooWide(evaluator->program(), loops);
  if (loops.size() > 1 && !wide.empty()) return InvalidArgument(wide);
  RETURN_IF_ERROR(CheckConstants(loops, *evaluator));
  if (group.choice < 0 || static_cast<size_t>(group.choice) >= lock.choices.size()) {
    return InvalidArgument("choice: ", group.choice, "; the lock has ", lock.choices.size());
  }
  return evaluator->Pin(loops, lock.choices[static_cast<size_t>(group.choice)]);
}

}  // namespace

absl::StatusOr<DimId> DimOf(std::string_view field, const std::string& name, const Smg& smg) {
  DimId d = FindDim(smg, name);
  if (d >= 0) return d;
  return InvalidArgument(field, ": no dim ", QuoteShort(name), "; the ops have ",
                         StrJoin(smg.dims, ", ", [](const SmgDim& dim) { return dim.name; }));
}

LockedCut CutOf(const FusionGroup& group, const Choice& choice) {
  auto name = [&](DimId d) { return group.smg.dim(d).name; };
  LockedCut cut;
  for (const GridDim& g : choice.grid) cut.grid.push_back({name(g.dim), g.tile});
  if (choice.temporal >= 0) {
    cut.streamed = LockedTile{name(choice.temporal), choice.temporal_tile};
  }
  std::map<int, const ProductChoice*> products;  // by op of the group
  for (const auto& [op, product] : choice.products) {
    const StreamedGroup* form = choice.streamed.get();
    int source = form == nullptr ? op : form->ops[static_cast<size_t>(op)].source;
    products.emplace(source, &product);
  }
  for (const auto& [op, product] : products) {
    cut.products.push_back({.op = op,
                            .swap = product->swap,
                            .rows = product->block.m,
                            .columns = product->block.n,
                            .stage_rows = product->stage_rows});
  }
  return cut;
}

absl::StatusOr<Choice> ChoiceFrom(const LockedCut& cut, const FusionGroup& group,
                                  const DeviceSpec& device, bool bitwise) {
  const Smg& smg = group.smg;
  Choice choice;
  for (const LockedTile& t : cut.grid) {
    ASSIGN_OR_RETURN(DimId d, DimOf("grid", t.dim, smg));
    choice.grid.push_back({d, t.tile});
  }
  for (const LockedProduct& p : cut.products) {
    bool known = p.op >= 0 && static_cast<size_t>(p.op) < smg.ops.size();
    if (!known || Classify(smg.op(p.op)) != OpClass::kProduct) {
      return InvalidArgument("products: op ", p.op, " is no matrix product");
    }
    ProductChoice product{.swap = p.swap, .block = {p.rows, p.columns}, .stage_rows = p.stage_rows};
    if (!choice.products.emplace(p.op, product).second) {
      return InvalidArgument("products: op ", p.op, " twice");
    }
  }
  if (cut.streamed.has_value()) {
    ASSIGN_OR_RETURN(DimId d, DimOf("streamed", cut.streamed->dim, smg));
    Refusal why;
    std::shared_ptr<const StreamedGroup> form = StreamGroup(group, d, &why);
    if (form == nullptr) {
      return InvalidArgument("streamed: dim ", smg.dim(d).name, ": ", why.ToString());
    }
    choice = choice.Streaming(std::move(form), cut.streamed->tile);
  }
  RETURN_IF_ERROR(CheckChoice(group, choice, device, bitwise));
  return choice;
}

absl::StatusOr<std::vector<std::vector<LoopId>>> PinGroups(const PlanLock& lock,
                                                           GroupEvaluator* evaluator) {
  RETURN_IF_ERROR(CheckCover(lock, evaluator->program()));
  RETURN_IF_ERROR(CheckOrder(lock, evaluator->program()));
  std::vector<std::vector<LoopId>> groups;
  std::map<std::vector<int>, size_t> first_with;  // by key: a group that looks the same
  for (size_t g = 0; g < lock.groups.size(); ++g) {
    const LockedGroup& group = lock.groups[g];
    auto [first, fresh] = first_with.emplace(evaluator->Key(group.ops), g);
    if (!fresh && lock.groups[first->second].choice != group.choice) {
      return InvalidArgument("lock.groups[", g, "].choice: ", group.choice, "; group ",
                             first->second, " is equal and has ",
                             lock.groups[first->second].choice);
    }
    if (fresh) {
      absl::Status pinned = PinGroup(group, lock, evaluator);
      if (!pinned.ok()) return Annotate(pinned, StrCat("lock.groups[", g, "]"));
    }
    groups.push_back(group.ops);
  }
  return groups;
}

}  // namespace fusion
