#pragma once

#include <functional>
#include <string>

#include "core/op/body/loop_body.h"

namespace fusion {

/// Text form of a loop body. All extents must be static. operand(i) is the name of input i:
///
///   for m:128 n:768 k:64 [m, n] = sum(%0[m, k], %1[k, n]) : mul(in0, in1)
std::string LoopBodyToString(const LoopBody& body,
                             const std::function<std::string(size_t)>& operand);

/// Inverse of LoopBodyToString. `operand(in)` parses the name of the next input and returns its
/// element type. Errors are InvalidArgument with the position, or those of `operand`. Call
/// LoopBody::Verify on the result: the invariants are not checked here.
absl::StatusOr<LoopBody> ParseLoopBody(
    Lexer& in, const std::function<absl::StatusOr<DType>(Lexer& in)>& operand);

}  // namespace fusion
