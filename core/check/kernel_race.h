#pragma once

#include "core/base/status.h"
#include "core/compile/kernel_race.h"

namespace fusion {

/// Times kernels that compute the same, side by side on this machine, under the conditions of a
/// plan: the same number of threads, which take tasks as the executor's do, and caches in the state
/// that another kernel leaves. Before every run
///   - all threads read and write `displaced_bytes` of other memory, as the other kernels of the
///   plan
///     do between two runs of this one. If that exceeds a cache, it evicts the kernel's weights,
///     code and scratch; with a small model they stay;
///   - the input activations are written, as the preceding kernel would. They are in cache as far
///   as
///     they fit. Weights are not written.
/// The kernels run in turn, and each round starts with another one, so that changes of the
/// machine's speed affect all of them. The first run of each, which waits for memory, is not
/// counted. All get the same random inputs. Starts threads, and joins them before it returns.
///
/// Results are not compared: callers enter only kernels that passed the check, or that could not be
/// checked. If KernelRace::limit is too short for all runners, the last ones do not run. With fewer
/// than two that can run, or if the first cannot, nothing is timed.
///
/// RaceTimes::refusal: this machine lacks the instruction set, the cores, the threads or the
/// memory. RaceTimes::Runner::refusal: it cannot be loaded, has other inputs than the first, or
/// would exceed kMaxRaceBytes together with those before it. Internal if a kernel returns an error
/// code.
absl::StatusOr<RaceTimes> RunRace(const KernelRace& race);

}  // namespace fusion
