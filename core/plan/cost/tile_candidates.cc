#include "core/plan/cost/tile_candidates.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/plan/sets/loop_sets.h"
#include "core/schedule/tiles/tiles_text.h"

namespace fusion {
namespace {

using Key = std::vector<int>;

// The sets of ops that run as sequential phases of launches.
std::vector<std::vector<LoopId>> SequentialPhasesOf(const PlannedModel& model) {
  std::vector<std::vector<LoopId>> sets;
  for (size_t g = 0; g < model.groups.size(); ++g) {
    if (model.choice_of[g] < 0) continue;
    for (const LockedSequentialPhase& turn :
         model.choices[static_cast<size_t>(model.choice_of[g])].turns) {
      sets.emplace_back();
      for (int op : turn.ops) sets.back().push_back(model.groups[g][static_cast<size_t>(op)]);
      std::sort(sets.back().begin(), sets.back().end());
    }
  }
  return sets;
}

// Counts excluded kernels by reason.
class LeftOut {
 public:
  void Add(int kernel, std::string_view why) { kernels_[std::string(why)].insert(kernel); }
  std::string ToString() const {
    return StrJoin(kernels_, "; ", [](const auto& entry) {
      const auto& [why, kernels] = entry;
      return StrCat(kernels.size(), kernels.size() == 1 ? " kernel " : " kernels ", why);
    });
  }

 private:
  std::map<std::string, std::set<int>> kernels_;
};

}  // namespace

TileChoices::TileChoices(const PlannedModel& model, const DeviceSpec& device,
                         const PlanOptions& options, const CancelToken* cancel)
    : options_(options), evaluator_(model.program, device, options, cancel) {
  const Plan& plan = model.plan;
  std::set<Key> phases;
  for (const std::vector<LoopId>& turn : SequentialPhasesOf(model))
    phases.insert(evaluator_.Key(turn));
  const std::vector<int64_t> runs = CountedRuns(plan);
  LeftOut left_out;
  std::map<Key, size_t> known;
  for (size_t l = 0; l < plan.launches.size(); ++l) {
    const int g = plan.launches[l].group;
    const auto at = static_cast<size_t>(g);
    const PlanGroup& group = plan.groups[at];
    if (!group.registered.empty()) {
      left_out.Add(group.kernel, "registered, not generated");
      continue;
    }
    if (model.inner[at]) {
      left_out.Add(group.kernel, "in the body of a loop");
      continue;
    }
    const std::vector<LoopId>& ops = model.groups[at];
    if (HasOpaque(model.program, ops)) {
      left_out.Add(group.kernel, "opaque, not cut into tiles");
      continue;
    }
    const LockedChoice& pick = model.choices[static_cast<size_t>(model.choice_of[at])];
    const Key key = evaluator_.Key(ops);
    if (!pick.turns.empty() || phases.contains(key)) {
      left_out.Add(group.kernel, "in a launch of several phases");
      continue;
    }
    auto [it, fresh] = known.try_emplace(key, kernels_.size());
    if (fresh) kernels_.push_back({.ops = ops, .group = g, .pick = pick});
    kernels_[it->second].run_us += static_cast<double>(runs[l]) * group.estimate.time_us;
  }
  std::stable_sort(kernels_.begin(), kernels_.end(),
                   [](const auto& a, const auto& b) { return a.run_us > b.run_us; });
  left_out_ = left_out.ToString();
}

absl::StatusOr<std::vector<TileCandidate>> TileChoices::Others(const TunableKernel& kernel,
                                                               size_t most) {
  const bool sparing = IsHighPressure(options_.hints.memory_pressure);
  ASSIGN_OR_RETURN(TriedChoice own, evaluator_.Try(kernel.ops, kernel.pick));
  ASSIGN_OR_RETURN(std::vector<AlternativeTiling> others,
                   evaluator_.AlternativeTilings(kernel.ops, kernel.pick,
                                                 kMostTimes * own.verdict.estimate.time_us,
                                                 sparing ? own.verdict.run_bytes : INT64_MAX));
  std::vector<TileCandidate> out;
  for (size_t i = 0; i < others.size() && i < most; ++i) {
    const GroupChoice& choice = *others[i].tried.choice;
    const Schedule& schedule = choice.lowered.schedule;
    out.push_back(
        {.choice = std::move(others[i].locked),
         .tiles = TilesText(schedule),
         .estimate = choice.estimate,
         .kernel = {.schedule = schedule,
                    .text = ToString(schedule),
                    .reference = MakeReference(choice.program, choice.group, choice.lowered)}});
  }
  return out;
}

}  // namespace fusion
