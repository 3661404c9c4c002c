#pragma once

#include <functional>
#include <string>

#include "core/op/body/loop_body.h"

namespace fusion {

/// Text form of a loop body of static extents; operand(i) prints what its input i is called:
///
///   for m:128 n:768 k:64 [m, n] = sum(%0[m, k], %1[k, n]) : mul(in0, in1)
std::string LoopBodyToString(const LoopBody& body,
                             const std::function<std::string(size_t)>& operand);

/// Inverse of LoopBodyToString: `operand(in)` takes the name of the next input and gives its
/// element type. Axes and inputs are not checked: LoopBody::Verify does that.
absl::StatusOr<LoopBody> ParseLoopBody(
    Lexer& in, const std::function<absl::StatusOr<DType>(Lexer& in)>& operand);

}  // namespace fusion
