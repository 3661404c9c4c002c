#include "core/benefit/compile_cost.h"

#include <algorithm>

#include "core/base/text/text.h"

namespace fusion {
namespace {

// Least squares of relative errors, rounded; half of the kernels are within 11 %, nine tenths
// within 28 %. Processor time of g++ 12.2 with the flags of core/compile/toolchain.cc and of ld,
// for 216 kernels of eleven models of fusion-modelgen, fused and op by op, for avx512; Intel family
// 6 model 85, 2026-11-22. Redo: compile what `fusionctl show MODEL source --format json` prints,
// and fit the times to lines and `mma` of the same kernels in `fusionctl show MODEL schedule
// --format json`.
constexpr double kKernelSeconds = 0.03;
constexpr double kLineSeconds = 0.001;
constexpr double kProductSeconds = 0.04;

}  // namespace

double CompileSeconds(std::string_view schedule_text) {
  double seconds = kKernelSeconds;
  for (std::string_view line : StrSplit(schedule_text, '\n')) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) continue;
    seconds += kLineSeconds + (line.starts_with("mma ") ? kProductSeconds : 0);
  }
  return seconds;
}

}  // namespace fusion
