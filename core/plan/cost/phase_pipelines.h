#pragma once

#include <vector>

#include "core/base/refusal.h"
#include "core/benefit/estimate.h"
#include "core/bundle/plan_lock.h"
#include "core/device/device_spec.h"
#include "core/schedule/ir/phase_pipeline.h"

namespace fusion {

/// A launch of several phases. Some of them run as pipelines.
struct Pipelined {
  Schedule schedule;
  std::vector<PhasePipeline> pipelines;  // ascending; phases are numbered as in the given launch
  /// By phase of the given launch, except the last: why the next phase waits at a barrier. Empty:
  /// both are in one pipeline.
  std::vector<Refusal> waits;
  Estimate estimate;  // the given estimate, adjusted for the pipelines
};

/// Runs adjacent phases of `joined` as pipelines wherever that is estimated to take at least 5 %
/// less time than barriers. `estimate` is that of the whole launch. Pure; deterministic.
Pipelined FormPipelines(Schedule joined, const Estimate& estimate, const DeviceSpec& device);

/// Runs exactly the phases that `pinned` names as pipelines. InvalidArgument, naming the field, if
/// that is impossible. Pure.
absl::StatusOr<Pipelined> PinPipelines(Schedule joined, const Estimate& estimate,
                                       const std::vector<LockedPipeline>& pinned,
                                       const DeviceSpec& device);

/// Pipelines in the form that locks store. `schedule` is the launch before or after the pipelines
/// were formed.
std::vector<LockedPipeline> LockedOf(const Schedule& schedule,
                                     const std::vector<PhasePipeline>& pipelines);

}  // namespace fusion
