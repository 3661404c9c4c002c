#pragma once

#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {

/// An alternative tiling of a kernel of a plan, with the kernel that it gives.
struct TileCandidate {
  LockedChoice choice;
  std::string tiles;  // TilesText
  Estimate estimate;
  PlannedKernel kernel;
};

/// A kernel of a plan that has alternative tilings.
struct TunableKernel {
  std::vector<LoopId> ops;  // of the first group that runs it
  int group = 0;            // that group, in Plan::groups
  double run_us = 0;        // estimated time of all its launches in one run
  LockedChoice pick;        // its tiling in the plan
};

/// Tilings with more than this many times the estimate of the pick are not tried: an estimate that
/// is wrong by more is a fault of the model, not of the pick. Chosen, not measured.
inline constexpr double kMostTimes = 2;

/// The kernels of a plan whose tilings a search may change: generated kernels that runs execute.
/// Excluded are registered kernels, opaque ops, kernels that run once (prepare), bodies of loops,
/// and launches of several phases together with kernels equal to one of their phases. Not
/// thread-safe. Constructor arguments must outlive it.
class TileChoices {
 public:
  /// `model`: a plan with these `options`, without a lock, of static shapes. `cancel` may be null.
  TileChoices(const PlannedModel& model, const DeviceSpec& device, const PlanOptions& options,
              const CancelToken* cancel);

  /// Descending by run_us.
  const std::vector<TunableKernel>& kernels() const { return kernels_; }
  /// The number of excluded kernels, by reason; empty: none.
  const std::string& left_out() const { return left_out_; }

  /// At most `most` other tilings of one of kernels(), the most promising first. With high memory
  /// pressure only tilings that hold no more memory during a run. Deterministic; fails only as
  /// `cancel` says.
  absl::StatusOr<std::vector<TileCandidate>> Others(const TunableKernel& kernel, size_t most);

 private:
  const PlanOptions& options_;
  GroupEvaluator evaluator_;
  std::vector<TunableKernel> kernels_;
  std::string left_out_;
};

}  // namespace fusion
