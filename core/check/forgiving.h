#pragma once

#include "core/graph/program/program.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// Tolerance for special values. `wanted` is the result of the evaluator, `got` that of a kernel,
/// of the same type and shape. Each function returns `wanted` with the elements of `got` wherever
/// any result of the kernel is acceptable, so that a comparison of `got` with it passes there.

/// Accepts any value where `wanted` is NaN, for kernels that skip what a mask hides.
HostTensor ForgivingNaN(const HostTensor& wanted, const HostTensor& got);

/// Accepts any value where `doubtful` is not finite. `doubtful` is a float tensor: the evaluator's
/// result for WithInfiniteSumsUnknown.
HostTensor ForgivingDoubtful(const HostTensor& wanted, const HostTensor& got,
                             const HostTensor& doubtful);

/// For inputs in which one number was replaced by NaN. Accepts any value for elements that do not
/// depend on that number, though a NaN reached `wanted` there. `before` and `after` are the
/// evaluator's results with the original number and with another one; an element that is equal in
/// both does not depend on it.
HostTensor ForgivingWhereEqual(const HostTensor& wanted, const HostTensor& got,
                               const HostTensor& before, const HostTensor& after);

/// Accepts any infinity or NaN where `wanted` is infinite or NaN and `before` and `after` differ:
/// there rounding decides which one results (0 times infinity, or the last place of a sum times
/// infinity). `before` and `after` are the evaluator's results of the unchanged program and of one
/// with other roundings (WithSumsMoved, WithUnderflowAsZero).
HostTensor ForgivingUnlikeInfinities(const HostTensor& wanted, const HostTensor& got,
                                     const HostTensor& before, const HostTensor& after);

/// The same program, but every read of an infinite sum gives NaN, so that what depends on it
/// becomes NaN too, even where it would be finite (tanh(inf) is 1). Loose schedules
/// (Schedule::loose) may compute NaN or the other infinity there.
Program WithInfiniteSumsUnknown(Program program);

/// The same program, but every sum is larger in magnitude by `places` units in the last place
/// (smaller, if negative), as another order of summation may make it.
Program WithSumsMoved(Program program, int places);

/// The same program, but denormal results of ops are read as 0 (limit: the smallest normal f32; of
/// f64 for f64). The evaluator computes in double and keeps smaller numbers than a kernel: infinity
/// times such a number is infinite, infinity times 0 is NaN.
Program WithUnderflowAsZero(Program program);

}  // namespace fusion
