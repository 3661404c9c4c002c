#pragma once

#include <memory>

#include "core/runtime/loaded_kernel.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// A schedule as a kernel, on the schedule interpreter: what runs or checks kernels takes it in
/// place of a compiled one. Reads and writes memory as the layouts of the params say. Every phase
/// has one task; the first does the work of all. `schedule` outlives it.
std::shared_ptr<const LoadedKernel> Interpreted(const Schedule& schedule);

}  // namespace fusion
