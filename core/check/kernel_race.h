#pragma once

#include "core/base/status.h"
#include "core/compile/kernel_race.h"

namespace fusion {

/// Times kernels that compute the same, side by side on this machine, under the conditions of a
/// plan: the same number of threads, which take tasks as the executor's do, and caches in the state
/// that another kernel leaves.
///
/// Before every run, all threads read and write `displaced_bytes` of other memory, as the other
/// kernels of the plan do between two runs of this one. If that exceeds a cache, it evicts the
/// kernel's weights, code and scratch; with a small model they stay. Then the input activations are
/// written, as the preceding kernel would, so that caches hold as much of them as fits. Weights are
/// not written.
///
/// Each round runs every kernel once and starts with another one, so that changes of the machine's
/// speed affect all of them. The first run of each, which waits for memory, is not counted. All get
/// the same random inputs. Starts threads, and joins them before it returns.
///
/// Results are not compared: pass only kernels that passed the check, or that could not be checked.
/// If KernelRace::limit is too short for all runners, the last ones are not timed; if it is too
/// short for one run of each, none is. Nothing is timed either if fewer than two can run, or if the
/// first cannot.
///
/// RaceTimes::refusal: this machine lacks the instruction set, the cores, the threads or the
/// memory. RaceTimes::Runner::refusal: it cannot be loaded, takes run-time dims, is guarded, has
/// other inputs than the first, or would exceed kMaxRaceBytes together with those before it.
/// Internal if a kernel returns an error code; InvalidArgument if the params of a runner do not
/// match its reference.
absl::StatusOr<RaceTimes> RunRace(const KernelRace& race);

}  // namespace fusion
