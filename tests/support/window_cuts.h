#pragma once

#include <vector>

#include "tests/support/whole_program.h"
#include "tests/support/window_cases.h"

namespace fusion {

/// All of a case as one group. It must have one.
WholeProgram WholeOf(const WindowCase& c);

/// Ways to cut a group along the dims that windows slide along: those that candidates give, and
/// short tiles of each such dim and of all of them, with windows read in place and gathered.
std::vector<Choice> WindowTilings(const FusionGroup& group, const DeviceSpec& device);

}  // namespace fusion
