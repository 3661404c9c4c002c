#include "core/plan/cost/split_choice.h"

#include <algorithm>

#include "core/plan/cost/pin.h"
#include "core/schedule/ir/join.h"
#include "core/schedule/ir/split_group.h"

namespace fusion {
namespace {

// The least length of a part. A shorter one does not pay for moving its partial results through
// memory.
constexpr int64_t kLeastPart = 16;
// How many numbers of parts are tried, the smallest that fill the units first.
constexpr size_t kMostSplits = 2;
// How many dims are tried.
constexpr size_t kMostDims = 2;

// Divisors of `extent` to try as numbers of parts: those that fill the units, smallest first, up to
// one that fills them exactly; if there is none, the largest divisor.
std::vector<int64_t> PartsOf(int64_t extent, int64_t needed) {
  std::vector<int64_t> enough;
  int64_t largest = 0;
  for (int64_t parts = 2; parts <= std::min<int64_t>(kMostSplitParts, extent / kLeastPart);
       ++parts) {
    if (extent % parts != 0) continue;
    largest = parts;
    bool full = !enough.empty() && enough.back() % needed == 0;
    if (parts >= needed && enough.size() < kMostSplits && !full) enough.push_back(parts);
  }
  if (enough.empty() && largest > 0) enough.push_back(largest);
  return enough;
}

// The reduced dims with the most work, descending.
std::vector<DimId> MostReduced(const Smg& smg) {
  std::vector<std::pair<double, DimId>> work;
  for (DimId d = 0; d < static_cast<DimId>(smg.dims.size()); ++d) {
    double points = 0;
    for (const SmgOp& op : smg.ops) {
      if (!op.Reduces(d)) continue;
      double space = 1;
      for (DimId e : op.dims) space *= static_cast<double>(smg.dim(e).extent);
      points += space;
    }
    if (points > 0) work.emplace_back(-points, d);
  }
  std::sort(work.begin(), work.end());
  std::vector<DimId> dims;
  for (size_t i = 0; i < work.size() && i < kMostDims; ++i) dims.push_back(work[i].second);
  return dims;
}

std::vector<int> NamesOf(const Lowered& lowered, int* packed) {
  std::vector<int> names;
  for (const LoweredParam& param : lowered.params) {
    names.push_back(param.packed ? (*packed)-- : static_cast<int>(param.value));
  }
  return names;
}

// The best schedules of both phases, joined; an error if one has none.
absl::StatusOr<std::shared_ptr<GroupChoice>> InTwoPhases(const FusionGroup& group,
                                                         SplitGroups split, LockedTile parts,
                                                         const DeviceSpec& device,
                                                         const CandidateOptions& options,
                                                         const CancelToken* cancel) {
  std::vector<std::shared_ptr<const GroupChoice>> phases;
  for (FusionGroup* phase : {&split.partial, &split.merge}) {
    ASSIGN_OR_RETURN(BestSchedule schedule, FindBestSchedule(*phase, device, options, cancel));
    auto made = std::make_shared<GroupChoice>();
    made->group = std::move(*phase);
    made->lowered = std::move(schedule.lowered);
    made->tiling = std::move(schedule.tiling);
    made->estimate = schedule.estimate;
    phases.push_back(std::move(made));
  }
  return JoinPhases(group, std::move(parts), std::move(phases), device);
}

}  // namespace

absl::StatusOr<std::shared_ptr<GroupChoice>> JoinPhases(
    const FusionGroup& group, LockedTile parts,
    std::vector<std::shared_ptr<const GroupChoice>> phases, const DeviceSpec& device) {
  std::vector<const Schedule*> schedules;
  std::vector<std::vector<int>> names;
  int packed = -1;
  for (const auto& phase : phases) {
    names.push_back(NamesOf(phase->lowered, &packed));
    schedules.push_back(&phase->lowered.schedule);
  }
  std::vector<int> kept(group.outputs.begin(), group.outputs.end());
  ASSIGN_OR_RETURN(JoinedSchedules joined, PutInPhases(schedules, names, kept));
  joined.schedule.label = group.Label();
  auto choice = std::make_shared<GroupChoice>();
  choice->group.smg = group.smg;
  choice->tiling.split = std::move(parts);
  for (const auto& phase : phases) choice->tiling.phases.push_back(phase->tiling);
  choice->parts = std::move(phases);
  choice->estimate = EstimateKernel(joined.schedule, device);
  choice->source = std::move(joined.source);
  choice->lowered.schedule = std::move(joined.schedule);
  return choice;
}

absl::StatusOr<BestSchedule> FindBestSchedule(const FusionGroup& group, const DeviceSpec& device,
                                              const CandidateOptions& options,
                                              const CancelToken* cancel) {
  BestSchedule best;
  std::string refusal;
  bool found = false;
  GroupLowering lowering(group, device, options.bitwise);
  for (const Choice& choice : EnumerateChoices(group, device, options, &refusal)) {
    if (cancel != nullptr) RETURN_IF_ERROR(cancel->Check());
    auto lowered = lowering.Of(choice);
    if (!lowered.ok()) {
      if (!found) refusal = std::string(Message(lowered.status()));
      continue;
    }
    Estimate estimate = EstimateKernel(lowered->schedule, device);
    if (!found || estimate.time_us < best.estimate.time_us) {
      best = {
          .lowered = *std::move(lowered), .tiling = TilingOf(group, choice), .estimate = estimate};
      found = true;
    }
  }
  if (!found) return FailedPrecondition(refusal);
  return best;
}

absl::StatusOr<std::vector<std::shared_ptr<GroupChoice>>> SplitChoices(
    const FusionGroup& group, const DeviceSpec& device, const CandidateOptions& options,
    const Estimate& best, const CancelToken* cancel) {
  std::vector<std::shared_ptr<GroupChoice>> found;
  int64_t needed = (device.threads + best.tasks - 1) / std::max<int64_t>(best.tasks, 1);
  // Bitwise plans need sums in index order, which sums of parts are not. Two phases take at least a
  // launch and a barrier.
  double least_us = (device.launch_s + device.barrier_s) * 1e6;
  if (needed < 2 || options.bitwise || best.time_us < least_us) return found;
  for (DimId d : MostReduced(group.smg)) {
    for (int64_t parts : PartsOf(group.smg.dim(d).extent, needed)) {
      absl::StatusOr<SplitGroups> split = SplitGroup(group, d, parts);
      if (!split.ok()) break;  // it fails for every number of parts
      auto choice = InTwoPhases(group, *std::move(split), {group.smg.dim(d).name, parts}, device,
                                options, cancel);
      if (WasGivenUp(choice.status())) return choice.status();
      if (choice.ok()) found.push_back(*std::move(choice));
    }
  }
  return found;
}

absl::StatusOr<std::shared_ptr<GroupChoice>> ChooseSplit(const FusionGroup& group,
                                                         const DeviceSpec& device,
                                                         const CandidateOptions& options,
                                                         const Estimate& best,
                                                         const CancelToken* cancel) {
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<GroupChoice>> tried,
                   SplitChoices(group, device, options, best, cancel));
  std::shared_ptr<GroupChoice> found;
  double least = best.time_us;
  for (std::shared_ptr<GroupChoice>& choice : tried) {
    if (choice->estimate.time_us >= least) continue;
    least = choice->estimate.time_us;
    found = std::move(choice);
  }
  return found;
}

}  // namespace fusion
