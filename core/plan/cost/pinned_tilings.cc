#include <algorithm>
#include <map>
#include <numeric>

#include "core/op/repeat.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/cost/pin.h"
#include "core/plan/cost/split_choice.h"
#include "core/plan/sets/loop_sets.h"
#include "core/schedule/ir/split_group.h"
#include "core/schedule/tiles/legality.h"

namespace fusion {

// Lowers `made->group` with an untrusted tiling.
absl::Status GroupEvaluator::ApplyTiling(const LockedTiling& tiling, GroupChoice* made) const {
  const bool bitwise = Candidates().bitwise;
  const LockUse use = options_.lock == nullptr ? LockUse::kAsIs : options_.lock->use;
  ASSIGN_OR_RETURN(Choice choice, ChoiceFrom(tiling, made->group, device_, bitwise, use));
  absl::StatusOr<Lowered> lowered = Lower(made->group, choice, device_, bitwise);
  if (!lowered.ok()) return InvalidArgument("no schedule: ", Message(lowered.status()));
  RETURN_IF_ERROR(Verify(lowered->schedule));
  std::string misfit = Misfit(NeedOnChip(lowered->schedule, device_), device_);
  if (!misfit.empty() && use != LockUse::kMember) return InvalidArgument(misfit);
  made->lowered = *std::move(lowered);
  made->tiling = tiling;
  if (use != LockUse::kMember) {
    made->tiling.extents.clear();
    for (const SmgDim& d : made->group.smg.dims) made->tiling.extents.push_back(d.extent);
  }
  made->estimate = EstimateKernel(made->lowered.schedule, device_);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const GroupChoice>> GroupEvaluator::MakePinned(
    const std::vector<LoopId>& loops, const LockedTiling& tiling) {
  if (HasOpaque(program_, loops)) {
    if (loops.size() > 1) return InvalidArgument("an opaque op is a kernel of its own");
    ASSIGN_OR_RETURN(std::shared_ptr<GroupChoice> opaque, ChoiceOfOpaque(loops[0]));
    return std::shared_ptr<const GroupChoice>(std::move(opaque));
  }
  auto made = std::make_shared<GroupChoice>();
  Refusal refusal = Extract(loops, kNoValue, made.get());
  if (!refusal.empty()) return InvalidArgument("no kernel holds its ops: ", refusal.ToString());
  if (!tiling.split.has_value()) {
    RETURN_IF_ERROR(ApplyTiling(tiling, made.get()));
    return std::shared_ptr<const GroupChoice>(std::move(made));
  }
  if (Candidates().bitwise) return InvalidArgument("split: sums in index order are not split");
  ASSIGN_OR_RETURN(DimId dim, DimOf("split", tiling.split->dim, made->group.smg));
  absl::StatusOr<SplitGroups> groups = SplitGroup(made->group, dim, tiling.split->tile);
  if (!groups.ok()) return InvalidArgument("split: ", Message(groups.status()));
  std::vector<std::shared_ptr<const GroupChoice>> phases;
  for (FusionGroup* group : {&groups->partial, &groups->merge}) {
    auto phase = std::make_shared<GroupChoice>();
    phase->group = std::move(*group);
    absl::Status status = ApplyTiling(tiling.phases[phases.size()], phase.get());
    if (!status.ok()) return Annotate(status, phases.empty() ? "split.partial" : "split.merge");
    phases.push_back(std::move(phase));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<GroupChoice> joined,
                   JoinPhases(made->group, *tiling.split, std::move(phases), device_));
  std::vector<ValueId> values = Values(loops);
  Complete(loops, {loops}, {values, values}, joined.get());
  return std::shared_ptr<const GroupChoice>(std::move(joined));
}

absl::StatusOr<TriedChoice> GroupEvaluator::Try(const std::vector<LoopId>& loops,
                                                const LockedChoice& choice) {
  RETURN_IF_ERROR(CheckCancel());
  if (ReadsReinterpreted(loops)) return InvalidArgument(reinterpreted_.refusal.ToString());
  std::vector<std::vector<LoopId>> parts = {loops};
  if (choice.parts.size() != 1) parts = Parts(loops);
  if (choice.parts.size() != parts.size() || parts.size() > kMostBeside) {
    return InvalidArgument("choice: cuts for ", choice.parts.size(), " parts; the ops fall into ",
                           parts.size(), ", at most ", kMostBeside, " run side by side");
  }
  Choices made;
  for (size_t i = 0; i < parts.size(); ++i) {
    absl::StatusOr<std::shared_ptr<const GroupChoice>> part = MakePinned(parts[i], choice.parts[i]);
    if (!part.ok()) return Annotate(part.status(), StrCat("choice.parts[", i, "]"));
    made.push_back(*std::move(part));
  }
  return TryBeside(loops, parts, std::move(made));
}

absl::StatusOr<TriedChoice> GroupEvaluator::TryBeside(const std::vector<LoopId>& loops,
                                                      const std::vector<std::vector<LoopId>>& parts,
                                                      Choices made) {
  TriedChoice tried;
  if (parts.size() == 1) {
    SetTerms(made[0]->lowered.schedule, made[0]->estimate, &tried.verdict);
    tried.choice = std::move(made[0]);
    return tried;
  }
  Known known = Join(loops, parts, std::move(made), /*whole=*/true);
  if (!known.verdict.refusal.empty()) {
    return InvalidArgument("choice: ", known.verdict.refusal.ToString());
  }
  return TriedChoice{std::move(known.choice), std::move(known.verdict)};
}

absl::Status GroupEvaluator::Pin(const std::vector<LoopId>& loops, const LockedChoice& choice) {
  ASSIGN_OR_RETURN(TriedChoice tried, Try(loops, choice));
  known_[Key(loops)] = {.verdict = std::move(tried.verdict), .choice = std::move(tried.choice)};
  return absl::OkStatus();
}

absl::Status GroupEvaluator::PinRepeat(LoopId repeat, std::shared_ptr<const PlanLock> lock) {
  RETURN_IF_ERROR(CheckCancel());
  ASSIGN_OR_RETURN(Known known, RepeatBy(repeat, std::move(lock)));
  known_[Key({repeat})] = std::move(known);
  return absl::OkStatus();
}

}  // namespace fusion
