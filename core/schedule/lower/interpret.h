#pragma once

#include <vector>

#include "core/schedule/ir/schedule.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// Runs a schedule step by step, as slowly and plainly as its text reads: the oracle for code
/// generators. Arithmetic in double, values rounded to the element type of the buffer they are
/// stored in. Layouts do not matter here: `params[i]` is the dense tensor of param i (outputs are
/// overwritten). Element indices outside a buffer are errors, so a schedule that reads past a tile
/// is caught here.
absl::Status Interpret(const Schedule& schedule, std::vector<HostTensor>* params);

}  // namespace fusion
