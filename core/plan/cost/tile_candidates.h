#pragma once

#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {

/// A way to cut a kernel of a plan that is not the model's pick, as far as a planner can take it.
struct TileCandidate {
  LockedChoice choice;
  std::string tiles;  // TilesText
  Estimate estimate;
  PlannedKernel kernel;
};

/// A kernel of a plan that may be cut otherwise.
struct TunableKernel {
  std::vector<LoopId> ops;  // of the first group that it runs
  int group = 0;            // that one, in Plan::groups
  double run_us = 0;        // estimated time of all its launches in a run
  LockedChoice pick;        // how it is cut
};

/// An estimate that is wrong by more than this is a fault of the model, not of its picks: cuts that
/// are estimated to take so many times as long as the pick are not tried. Chosen, not measured.
inline constexpr double kMostTimes = 2;

/// What a search may try of a plan: the kernels that it generates for its runs. Left out are
/// registered kernels, what runs once (prepare), bodies of loops, and launches of several phases
/// with the kernels that equal one of them. Not thread-safe. What it is made from outlives it.
class TileChoices {
 public:
  /// `model`: of `options`, without a lock, of static shape. `cancel` may be null.
  TileChoices(const PlannedModel& model, const DeviceSpec& device, const PlanOptions& options,
              const CancelToken* cancel);

  /// Those with most of the estimated time first.
  const std::vector<TunableKernel>& kernels() const { return kernels_; }
  /// How many kernels are not among them, and why; empty: none.
  const std::string& left_out() const { return left_out_; }

  /// At most `most` other ways to cut a kernel, the most promising first; with high memory pressure
  /// none that holds more for a run. Deterministic; fails only as `cancel` says.
  absl::StatusOr<std::vector<TileCandidate>> Others(const TunableKernel& kernel, size_t most);

 private:
  const PlanOptions& options_;
  GroupEvaluator evaluator_;
  std::vector<TunableKernel> kernels_;
  std::string left_out_;
};

}  // namespace fusion
