#pragma once

#include <string>

#include "core/compile/command.h"

namespace fusion {

/// Limits of one run of graphviz.
struct DrawLimits {
  Nanoseconds wall = std::chrono::minutes(30);
  int64_t memory_bytes = 0;  // address space; 0: no limit
  int64_t svg_bytes = int64_t{1} << 30;
};

/// Whether graphviz is installed in a directory of PATH.
bool CanDraw(CommandRunner& runner);

/// Renders `dot` as SVG by running graphviz. FailedPrecondition if it is not installed in a
/// directory of PATH; ResourceExhausted, naming the limit, if it exceeds one; Internal, with its
/// messages, if it fails.
absl::StatusOr<std::string> DrawSvg(const std::string& dot, CommandRunner& runner,
                                    const DrawLimits& limits = {});

}  // namespace fusion
