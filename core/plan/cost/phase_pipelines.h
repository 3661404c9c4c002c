#pragma once

#include <vector>

#include "core/base/refusal.h"
#include "core/benefit/estimate.h"
#include "core/bundle/plan_lock.h"
#include "core/device/device_spec.h"
#include "core/schedule/ir/phase_pipeline.h"

namespace fusion {

/// A launch of several phases, of which some run as pipelines.
struct Pipelined {
  Schedule schedule;
  std::vector<PhasePipeline> pipelines;  // in the phases before, ascending
  /// By phase before, but for the last one: why the next one waits until it is over. Empty: it does
  /// not.
  std::vector<Refusal> waits;
  Estimate estimate;  // of the launch, as given, with them
};

/// Runs neighbouring phases of `joined` as pipelines wherever that is estimated to take clearly
/// less time than barriers. `estimate` is that of the launch. Deterministic.
Pipelined FormPipelines(Schedule joined, const Estimate& estimate, const DeviceSpec& device);

/// Runs these phases as pipelines, whatever is better. InvalidArgument, naming the field, if they
/// cannot.
absl::StatusOr<Pipelined> PinPipelines(Schedule joined, const Estimate& estimate,
                                       const std::vector<LockedPipeline>& pinned,
                                       const DeviceSpec& device);

/// How a lock names pipelines; `schedule` has them or is the one before.
std::vector<LockedPipeline> LockedOf(const Schedule& schedule,
                                     const std::vector<PhasePipeline>& pipelines);

}  // namespace fusion
