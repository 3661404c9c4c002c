#include "core/schedule/lower/lower.h"

#include <algorithm>
#include <limits>

#include "core/base/contains.h"
#include "core/schedule/ir/aliases.h"
#include "core/schedule/lower/lower_nest.h"
#include "core/schedule/memory/block_windows.h"

namespace fusion {
namespace {

// The halos whose dims nests walk, and the halos that these depend on: values that are computed
// where they are read walk the reader's dims.
std::vector<Halo> Walked(std::vector<Halo> halos, const NestPlan& plan, const Smg& smg) {
  std::vector<DimId> walked;
  for (const std::vector<Nest>* section : {&plan.before, &plan.inside, &plan.after}) {
    for (const Nest& nest : *section) {
      walked.insert(walked.end(), nest.dims.begin(), nest.dims.end());
      for (int i : nest.products) {
        walked.insert(walked.end(), smg.op(i).dims.begin(), smg.op(i).dims.end());
      }
    }
  }
  for (size_t h = halos.size(); h-- > 0;) {
    if (!Contains(walked, halos[h].dim)) {
      halos.erase(halos.begin() + static_cast<int64_t>(h));
      continue;
    }
    for (const IndexExpr& e : halos[h].reached) {
      for (const IndexExpr::Term& t : e.terms()) walked.push_back(t.axis);
    }
  }
  return halos;
}

// Allocates partial results that are read or replaced before their first tile.
absl::Status DeclareStates(NestContext* at) {
  const StreamedGroup* streamed = at->choice.streamed.get();
  if (streamed == nullptr) return absl::OkStatus();
  at->locals.Enter(1, 0);
  bool watched = !streamed->underflow.needed.empty() && !at->lowered.schedule.bitwise;
  if (watched) RETURN_IF_ERROR(DeclareState(streamed->underflow.maximum, at));
  if (!streamed->rewritten) return absl::OkStatus();
  for (size_t i = 0; i < streamed->ops.size(); ++i) {
    if (streamed->ops[i].role == StreamRole::kPlain) continue;
    for (const SmgRead& read : at->op(static_cast<int>(i)).reads) {
      bool state = read.producer >= 0 && streamed->IsState(read.producer);
      if (state) RETURN_IF_ERROR(DeclareState(read.producer, at));
    }
  }
  return absl::OkStatus();
}

// `body` under the condition that finite masks leave something, or that some row has not yet seen a
// value large enough for the masked ones to underflow: tests the least of the rows' maxima.
Block UnlessUnderflow(const Streamed::Underflow& underflow, Block body, NestContext* at) {
  BufferId maxima = at->locals.Of(underflow.maximum);
  const Buffer of = at->buffer(maxima);
  BufferId least = at->locals.Add({}, of.dtype, Level::kStaged);
  Access all{.buffer = maxima, .index = {}};
  for (DimId d : of.dims) all.index.push_back(IndexExpr::Axis(d));
  EachStmt fold{.dims = of.dims, .ops = {}};
  fold.ops.push_back(
      {.kind = ElementOp::kLoad, .result = 0, .type = of.dtype, .access = {std::move(all)}});
  fold.ops.push_back({.kind = ElementOp::kReduce,
                      .args = {0},
                      .type = of.dtype,
                      .access = {{.buffer = least, .index = {}}},
                      .monoid = "min"});
  Block block;
  block.push_back(Stmt{AllocStmt{least}});
  block.push_back(Stmt{InitStmt{{least}, "min"}});
  block.push_back(Stmt{std::move(fold)});
  block.push_back(Stmt{IfStmt{.somewhere = underflow.needed,
                              .watched = least,
                              .least = underflow.least,
                              .body = std::move(body)}});
  return block;
}

// The input of lowering for one part of the temporal loop.
struct LoopPart {
  int64_t begin = 0;
  int64_t end = -1;  // all of the dim
  const FusionGroup& group;
  const NestPlan& plan;
  int section = kInsideLoop;
  std::vector<NestCode> code = {};
  int64_t tile = 0;
};

// The nests of section `s` of `plan`, before, inside or after the temporal loop, as section
// `section` of the block.
absl::StatusOr<std::vector<NestCode>> LowerSection(size_t s, int section, NestContext* at) {
  const std::vector<const std::vector<Nest>*> sections = {&at->plan.before, &at->plan.inside,
                                                          &at->plan.after};
  const std::vector<Nest>& nests = *sections[s];
  at->last_reads = LastReads(at->group, at->plan, sections, s);
  std::vector<NestCode> out;
  for (size_t n = 0; n < nests.size(); ++n) {
    at->locals.Enter(section, static_cast<int>(n));
    bool plain = nests[n].products.empty();
    ASSIGN_OR_RETURN(NestCode code,
                     plain ? LowerPlainNest(nests[n], at) : LowerProductNest(nests[n], at));
    out.push_back(std::move(code));
  }
  return out;
}

// The parts of the temporal loop, one after the other, with the buffers of `at`.
absl::Status LowerParts(const std::vector<Halo>& halos, std::vector<LoopPart>* parts,
                        NestContext* at) {
  const Choice& choice = at->choice;
  const std::vector<BufferId> before = at->locals.held();
  for (size_t p = 0; p < parts->size(); ++p) {
    LoopPart& part = (*parts)[p];
    const ProductRoles roles(part.group, choice, halos);
    NestContext here{.group = part.group,
                     .choice = choice,
                     .device = at->device,
                     .plan = part.plan,
                     .roles = roles,
                     .params = at->params,
                     .lowered = at->lowered,
                     .windows = at->windows,
                     .last_reads = {},
                     .locals = std::move(at->locals)};
    here.windows[static_cast<size_t>(choice.temporal)] = part.tile;
    auto code = LowerSection(kInsideLoop, part.section, &here);
    if (code.ok() && p + 1 < parts->size()) {
      here.locals.NextPart(before, [&](int op) {
        return choice.streamed->IsState(op) ||
               here.last_reads[static_cast<size_t>(op)] == std::numeric_limits<int>::max();
      });
    }
    at->locals = std::move(here.locals);
    RETURN_IF_ERROR(code.status());
    part.code = *std::move(code);
  }
  return absl::OkStatus();
}

// True if a loop over `dim` certainly runs a tile in which each of `needed` is at least 0 at some
// point, whatever the block. Tries coordinates along `dim`: both ends, where one of the functions
// is 0, and where it would be without its constant (the diagonal of a band).
bool RunsATile(const std::vector<IndexExpr>& needed, DimId dim, const Smg& smg) {
  const int64_t extent = smg.dim(dim).extent;
  auto range = [&smg](int d) { return IndexRange{0, smg.dim(d).extent}; };
  auto holds_at = [&](const IndexExpr& place) {
    const IndexRange places = RangeOf(place, range);
    if (places.empty() || places.begin < 0 || places.end > extent) return false;
    return std::all_of(needed.begin(), needed.end(), [&](const IndexExpr& e) {
      const IndexExpr there =
          e.Substitute([&](int d) { return d == dim ? place : IndexExpr::Axis(d); });
      const IndexRange values = RangeOf(there, range);
      return !values.empty() && values.begin >= 0;
    });
  };
  if (holds_at(IndexExpr(0)) || holds_at(IndexExpr(extent - 1))) return true;
  return std::any_of(needed.begin(), needed.end(), [&](const IndexExpr& e) {
    const int64_t slope = e.CoefficientOf(dim);
    if (slope != 1 && slope != -1) return false;
    const IndexExpr others =
        e.Substitute([&](int d) { return d == dim ? IndexExpr(0) : IndexExpr::Axis(d); });
    const IndexExpr zero = others * -slope;
    return holds_at(zero) || holds_at(zero + IndexExpr(-zero.constant()));
  });
}

// `inside` under the condition that a mask leaves something of a slice. The values of its tiles of
// which the block makes its results must be there: where no tile may be left of a block, the first
// one, with `first`, is computed all the same. With open dims it always is: all members of a family
// have one schedule.
Block UnlessMasked(const StreamedGroup& streamed, bool first, Block inside, NestContext* at) {
  if (at->lowered.schedule.bitwise) return inside;
  if (!streamed.underflow.needed.empty()) {
    inside = UnlessUnderflow(streamed.underflow, std::move(inside), at);
  }
  if (!streamed.needed.empty()) {
    const auto& views = at->group.views;
    const bool open = std::any_of(views.begin(), views.end(),
                                  [](const auto& entry) { return entry.second.open; });
    const bool always =
        !first || (!open && RunsATile(streamed.needed, streamed.dim, at->group.smg));
    IfStmt needed{.somewhere = streamed.needed,
                  .first = always ? -1 : streamed.dim,
                  .body = std::move(inside)};
    inside.clear();
    inside.push_back(Stmt{std::move(needed)});
  }
  return inside;
}

// The code of a block: its nests before, inside and after the temporal loop.
absl::StatusOr<Block> LowerBlock(const std::vector<Halo>& halos, std::vector<LoopPart> parts,
                                 NestContext* at) {
  const Choice& choice = at->choice;
  ASSIGN_OR_RETURN(std::vector<NestCode> before, LowerSection(0, kBeforeLoop, at));
  RETURN_IF_ERROR(DeclareStates(at));
  RETURN_IF_ERROR(LowerParts(halos, &parts, at));
  ASSIGN_OR_RETURN(std::vector<NestCode> after, LowerSection(2, kAfterLoop, at));
  // Buffers are allocated once all their uses are known.
  int64_t lanes = at->device.vector_bytes / 4;
  auto assembled = [&](int section, std::vector<NestCode> nests, const Dims& windows) {
    return AssembleSection(section, std::move(nests), at->locals, windows, lanes,
                           !at->device.explicit_memory);
  };
  Block body = AllocateShared(at->locals);
  Append(assembled(kBeforeLoop, std::move(before), at->windows), &body);
  for (LoopPart& part : parts) {
    for (NestCode& nest : part.code) Append(std::move(nest.once), &body);
    Dims windows = at->windows;
    int64_t& window = windows[static_cast<size_t>(choice.temporal)];
    window = std::min(window, part.tile);
    Block inside = assembled(part.section, std::move(part.code), windows);
    inside = UnlessMasked(*choice.streamed, part.begin == 0, std::move(inside), at);
    Append(LoopOver(choice.temporal, part.tile, std::move(inside), part.begin, part.end), &body);
  }
  Append(assembled(kAfterLoop, std::move(after), at->windows), &body);
  return body;
}

// The parts of the temporal loop of a choice: those of its form, whose plans are `of_parts`, or one
// part for all of it.
std::vector<LoopPart> PartsOfLoop(const FusionGroup& group, const Choice& choice,
                                  const NestPlan& plan, const std::vector<NestPlan>& of_parts) {
  std::vector<LoopPart> parts;
  if (choice.temporal < 0) return parts;
  if (of_parts.empty()) {
    parts.push_back({.group = group, .plan = plan, .tile = choice.temporal_tile});
    return parts;
  }
  for (size_t p = 0; p < of_parts.size(); ++p) {
    const StreamedPart& from = choice.streamed->parts[p];
    parts.push_back({.begin = from.begin,
                     .end = from.end,
                     .group = from.group,
                     .plan = of_parts[p],
                     .section = p == 0 ? kInsideLoop : kAfterLoop + static_cast<int>(p),
                     .tile = std::min(choice.temporal_tile, from.end - from.begin)});
  }
  return parts;
}

}  // namespace

Choice Choice::Streaming(std::shared_ptr<const StreamedGroup> form, int64_t tile) const {
  Choice out{.grid = grid, .temporal = form->dim, .temporal_tile = tile, .streamed = form};
  out.most = most;
  for (size_t i = 0; i < form->ops.size(); ++i) {
    auto from = products.find(form->ops[i].source);
    if (from != products.end()) out.products[static_cast<int>(i)] = from->second;
  }
  return out;
}

absl::StatusOr<std::vector<Halo>> HalosOfChoice(const Smg& smg, const Choice& choice) {
  std::vector<DimId> tiled;
  for (const GridDim& g : choice.grid) {
    if (g.tile < choice.MostOf(smg, g.dim)) tiled.push_back(g.dim);
  }
  std::optional<std::vector<Halo>> halos = HalosOf(smg, tiled);
  if (!halos.has_value()) {
    return RefusalStatus(RefusalCode::kShift, "halos of blocks along ", smg.DimNames(tiled),
                         " reach for each other");
  }
  return *std::move(halos);
}

absl::StatusOr<Lowered> Lower(const FusionGroup& group, const Choice& choice,
                              const DeviceSpec& device, bool bitwise) {
  return GroupLowering(group, device, bitwise).Of(choice);
}

absl::StatusOr<GroupLowering::Plans> GroupLowering::PlansOf(const StreamedGroup* streamed) const {
  Plans out;
  ASSIGN_OR_RETURN(out.whole, PlanNests(streamed == nullptr ? group_ : streamed->group, streamed));
  if (streamed == nullptr) return out;
  for (const StreamedPart& part : streamed->parts) {
    ASSIGN_OR_RETURN(NestPlan plan, PlanNests(part.group, streamed));
    out.parts.push_back(std::move(plan));
  }
  return out;
}

absl::StatusOr<Lowered> GroupLowering::Of(const Choice& choice) {
  const StreamedGroup* streamed = choice.streamed.get();
  const FusionGroup& group = streamed == nullptr ? group_ : streamed->group;
  auto known = plans_.find(choice.streamed);
  if (known == plans_.end()) known = plans_.emplace(choice.streamed, PlansOf(streamed)).first;
  RETURN_IF_ERROR(known->second.status());
  const NestPlan& plan = known->second->whole;
  Lowered lowered;
  lowered.certificate = group.certificate;
  Schedule& s = lowered.schedule;
  s.bitwise = bitwise_;
  s.loose = group_.loose || group.loose;
  s.label = group_.Label();
  for (const SmgDim& d : group.smg.dims) s.dims.push_back({d.name, d.extent});
  if (!choice.most.empty() && choice.most.size() != s.dims.size()) {
    return FailedPrecondition("a member of a family has ", s.dims.size(), " dims, the largest one ",
                              choice.most.size());
  }
  std::vector<ScheduleDim> longest = s.dims;
  for (size_t d = 0; d < longest.size(); ++d) {
    longest[d].extent = choice.MostOf(group.smg, static_cast<DimId>(d));
  }
  ASSIGN_OR_RETURN(std::vector<Halo> halos, HalosOfChoice(group.smg, choice));
  halos = Walked(std::move(halos), plan, group.smg);
  ProductRoles roles(group, choice, halos);
  ASSIGN_OR_RETURN(ParamTable params, DeclareParams(group, roles, &lowered));
  NestContext context{.group = group,
                      .choice = choice,
                      .device = device_,
                      .plan = plan,
                      .roles = roles,
                      .params = params,
                      .lowered = lowered,
                      .windows = LongestWindows(longest, choice.grid, halos),
                      .last_reads = {},
                      .locals = LocalBuffers(group.smg.ops.size(), &s)};
  std::vector<LoopPart> parts = PartsOfLoop(group, choice, plan, known->second->parts);
  Segment segment{.grid = choice.grid, .halos = halos, .body = {}};
  ASSIGN_OR_RETURN(segment.body, LowerBlock(halos, std::move(parts), &context));
  Phase phase;
  phase.segments.push_back(std::move(segment));
  s.phases.push_back(std::move(phase));
  s.may_alias = FindAliases(s);
  return lowered;
}

Schedule PackSchedule(const FusionGroup& group, const Lowered& lowered, size_t param) {
  const LoweredParam& packed = lowered.params[param];
  const Buffer& target = lowered.schedule.buffer(static_cast<BufferId>(param));
  const TensorView& view = group.view(packed.value);
  Schedule s;
  s.label = "Pack";
  std::map<DimId, DimId> renumber;
  for (DimId d : packed.dims) {
    renumber[d] = static_cast<DimId>(s.dims.size());
    s.dims.push_back(lowered.schedule.dim(d));
    s.dims.back().name = StrCat("i", s.dims.size() - 1);
  }
  s.buffers.push_back({.name = "p0",
                       .level = Level::kGlobal,
                       .dtype = view.dtype,
                       .kind = ParamKind::kWeight,
                       .shape = view.shape,
                       .layout = {.strides = view.strides}});
  s.buffers.push_back(target);
  s.buffers.back().name = "p1";
  s.buffers.back().kind = ParamKind::kOutput;
  s.params = 2;
  CopyStmt copy;
  for (const IndexExpr& e : packed.source) {
    copy.source.index.push_back(
        e.Substitute([&](int d) { return IndexExpr::Axis(renumber.at(d)); }));
  }
  copy.target.buffer = 1;
  for (size_t i = 0; i < s.dims.size(); ++i) {
    copy.dims.push_back(static_cast<DimId>(i));
    copy.target.index.push_back(IndexExpr::Axis(static_cast<int>(i)));
  }
  // One task packs a block of columns.
  Segment segment;
  segment.grid = {{static_cast<DimId>(s.dims.size()) - 1, target.layout.block}};
  segment.body.push_back(Stmt{std::move(copy)});
  Phase phase;
  phase.segments.push_back(std::move(segment));
  s.phases.push_back(std::move(phase));
  return s;
}

}  // namespace fusion
