#pragma once

#include <string>
#include <vector>

#include "core/bundle/answer.h"
#include "core/bundle/plan.h"

namespace fusion {

/// What the caller of a plan should know: nodes that are not fused because a kernel failed, passes
/// that were left out, kernels that could not be compared with the evaluator (`kernels`: by plan
/// kernel), and a search for tiles that did not run or did not end.
std::vector<std::string> WarningsOf(const Plan& plan, const std::vector<KernelStatus>& kernels);

}  // namespace fusion
