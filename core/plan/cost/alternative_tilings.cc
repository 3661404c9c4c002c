#include <algorithm>
#include <map>
#include <set>

#include "core/plan/cost/evaluator.h"
#include "core/plan/cost/pin.h"
#include "core/plan/cost/split_choice.h"
#include "core/schedule/ir/split_group.h"
#include "core/schedule/tiles/candidates.h"
#include "core/schedule/tiles/near_choices.h"

namespace fusion {
namespace {

// Limit on enumerated tilings, which come in order of preference; most groups have fewer. Chosen:
// twice the number that level 3 tries.
constexpr int kMostEnumerated = 32;

// The form of a tiling, about which an estimate is most likely wrong: tilings that differ only in
// tile lengths have the same text.
std::string FormOf(const LockedTiling& tiling) {
  std::string form;
  for (const LockedProduct& p : tiling.products) {
    StrAppend(&form, StrCat(p.op, p.swap ? " swapped " : " ", p.rows, "x", p.columns,
                            p.stage_rows ? " staged;" : ";"));
  }
  if (tiling.streamed.has_value()) StrAppend(&form, StrCat(" streams ", tiling.streamed->dim));
  if (tiling.split.has_value()) StrAppend(&form, StrCat(" splits ", tiling.split->dim));
  for (const LockedTiling& phase : tiling.phases)
    StrAppend(&form, StrCat(" (", FormOf(phase), ")"));
  return form;
}

std::string FormOf(const LockedChoice& choice) {
  return StrJoin(choice.parts, " | ", [](const LockedTiling& tiling) { return FormOf(tiling); });
}

// Adds tilings of `group` close to `tiling`, which must not be split.
void AddNear(const FusionGroup& group, const LockedTiling& tiling, const DeviceSpec& device,
             bool bitwise, std::vector<LockedTiling>* out) {
  absl::StatusOr<Choice> choice = ChoiceFrom(tiling, group, device, bitwise);
  if (!choice.ok()) return;
  for (const Choice& near : ChoicesNear(group, *choice, device, bitwise)) {
    out->push_back(TilingOf(group, near));
  }
}

// Orders by rank within a form, then by estimate: first the best of each form, then the second
// best, and so on. An estimate that is wrong about a form is wrong about all tilings of it.
void SortVaried(std::vector<AlternativeTiling>* tilings) {
  std::stable_sort(tilings->begin(), tilings->end(),
                   [](const AlternativeTiling& a, const AlternativeTiling& b) {
                     return a.tried.verdict.estimate.time_us < b.tried.verdict.estimate.time_us;
                   });
  std::map<std::string, int> seen;
  std::vector<std::pair<int, AlternativeTiling>> placed;
  for (AlternativeTiling& tiling : *tilings) {
    const int place = seen[FormOf(tiling.locked)]++;
    placed.emplace_back(place, std::move(tiling));
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  tilings->clear();
  for (auto& [place, tiling] : placed) tilings->push_back(std::move(tiling));
}

}  // namespace

absl::StatusOr<std::vector<LockedTiling>> GroupEvaluator::TilingsBeside(
    const std::vector<LoopId>& part, const LockedTiling& tiling) {
  std::vector<LockedTiling> tilings;
  GroupChoice alone;
  if (!Extract(part, kNoValue, &alone).empty()) return tilings;
  const FusionGroup& group = alone.group;
  CandidateOptions options = Candidates();
  options.limit = kMostEnumerated;
  for (const Choice& choice : EnumerateChoices(group, device_, options, nullptr)) {
    tilings.push_back(TilingOf(group, choice));
  }
  options.limit = CandidateOptions().limit;  // the phases of a split are the best by estimate
  Estimate whole;
  if (!tiling.split.has_value()) {
    AddNear(group, tiling, device_, options.bitwise, &tilings);
    ASSIGN_OR_RETURN(std::shared_ptr<const GroupChoice> own, MakePinned(part, tiling));
    whole = own->estimate;
  } else {
    absl::StatusOr<BestSchedule> best = FindBestSchedule(group, device_, options, cancel_);
    if (WasGivenUp(best.status())) return best.status();
    if (best.ok()) whole = best->estimate;
    absl::StatusOr<DimId> dim = DimOf("split", tiling.split->dim, group.smg);
    absl::StatusOr<SplitGroups> split =
        dim.ok() ? SplitGroup(group, *dim, tiling.split->tile) : dim.status();
    std::vector<LockedTiling> partial;
    if (split.ok()) {
      AddNear(split->partial, tiling.phases[0], device_, options.bitwise, &partial);
    }
    for (LockedTiling& near : partial) {
      LockedTiling other = tiling;
      other.phases[0] = std::move(near);
      tilings.push_back(std::move(other));
    }
  }
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<GroupChoice>> splits,
                   SplitChoices(group, device_, options, whole, cancel_));
  for (const std::shared_ptr<GroupChoice>& split : splits) tilings.push_back(split->tiling);
  return tilings;
}

absl::StatusOr<std::vector<AlternativeTiling>> GroupEvaluator::AlternativeTilings(
    const std::vector<LoopId>& loops, const LockedChoice& choice, double most_us,
    int64_t most_bytes) {
  std::vector<AlternativeTiling> found;
  if (!choice.turns.empty() || ReadsReinterpreted(loops)) return found;
  std::vector<std::vector<LoopId>> parts = {loops};
  if (choice.parts.size() != 1) parts = Parts(loops);
  if (parts.size() != choice.parts.size()) return found;
  ASSIGN_OR_RETURN(TriedChoice own, Try(loops, choice));
  Choices made;  // a candidate differs in one of them
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSIGN_OR_RETURN(made.emplace_back(), MakePinned(parts[i], choice.parts[i]));
  }
  std::set<std::string> known = {ToString(own.choice->lowered.schedule)};
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSIGN_OR_RETURN(std::vector<LockedTiling> tilings, TilingsBeside(parts[i], choice.parts[i]));
    for (LockedTiling& tiling : tilings) {
      RETURN_IF_ERROR(CheckCancel());
      absl::StatusOr<std::shared_ptr<const GroupChoice>> part = MakePinned(parts[i], tiling);
      if (!part.ok()) continue;
      Choices with = made;
      with[i] = *std::move(part);
      absl::StatusOr<TriedChoice> tried = TryBeside(loops, parts, std::move(with));
      if (WasGivenUp(tried.status())) return tried.status();
      LockedChoice other = choice;
      other.parts[i] = std::move(tiling);
      if (!tried.ok() || tried->verdict.estimate.time_us > most_us ||
          tried->verdict.run_bytes > most_bytes) {
        continue;
      }
      if (!known.insert(ToString(tried->choice->lowered.schedule)).second) continue;
      found.push_back({std::move(other), *std::move(tried)});
    }
  }
  SortVaried(&found);
  return found;
}

}  // namespace fusion
