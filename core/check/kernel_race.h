#pragma once

#include "core/base/status.h"
#include "core/compile/kernel_race.h"

namespace fusion {

/// Times kernels that compute the same, side by side on this machine, as runs of a plan would have
/// them run: on as many threads, which take tasks as the executor's do, and on caches as another
/// kernel leaves them. Before every run
///   - `displaced_bytes` of other memory are read and written, by all threads: what the other
///     kernels of a plan do between two runs of this one. What is larger than a cache drives the
///     kernel's weights, code and scratch out of it; a small model keeps them;
///   - the activations that it reads are written, as by the kernel before it: they are as near as
///     the caches are large. Weights are not.
/// They run in turn, in another order every round, so that a machine that gets slower or busier
/// slows all of them. The first run of each, which waits for memory, is not counted.
///
/// What is random is the same for all of them. Results are not compared: whoever enters a kernel
/// has had it checked, as far as that could be. Where not all of them can run often enough within
/// KernelRace::limit, the last ones do not run. A refusal of the whole race: this machine lacks the
/// instruction set, the cores or the memory; of a runner: it cannot be loaded, or all of them need
/// more than kMaxRaceBytes. Fewer than two that can run are no race. Internal if a kernel answers a
/// code. Starts threads of its own, and ends them.
absl::StatusOr<RaceTimes> RunRace(const KernelRace& race);

}  // namespace fusion
