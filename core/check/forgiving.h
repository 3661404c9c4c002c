#pragma once

#include "core/graph/program/program.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// What a kernel may answer in place of what the evaluator answers. Each function gives `wanted`,
/// what the evaluator says, with what `got`, the kernel's answer of the same type and shape, has in
/// the places where any answer is right.

/// Anything where NaN is wanted: kernels that leave out what a mask hides.
HostTensor ForgivingNaN(const HostTensor& wanted, const HostTensor& got);

/// Anything where `doubtful` is not finite.
HostTensor ForgivingDoubtful(const HostTensor& wanted, const HostTensor& got,
                             const HostTensor& doubtful);

/// Anything where a NaN made what is wanted that stands for a number on which it does not depend:
/// it is the same with that number, `before`, and with another one, `after`.
HostTensor ForgivingWhereEqual(const HostTensor& wanted, const HostTensor& got,
                               const HostTensor& before, const HostTensor& after);

/// Any infinity or NaN where an infinity or NaN is wanted and `before` and `after` have different
/// ones: rounding decides (0 times infinity beside the last place of a sum times infinity).
HostTensor ForgivingUnlikeInfinities(const HostTensor& wanted, const HostTensor& got,
                                     const HostTensor& before, const HostTensor& after);

/// The same program, in which what is computed from an infinite sum is NaN, also where it would be
/// a number again (tanh makes 1 of it): a loose schedule may have NaN, or the other infinity, in
/// its place.
Program WithInfiniteSumsUnknown(Program program);

/// The same program, in which every sum is larger in magnitude by this many units in the last place
/// (smaller, if negative): as another order of its terms may make it.
Program WithSumsMoved(Program program, int places);

/// The same program, in which 0 is read where an op computed a number too small for its type to
/// hold with all its places: the evaluator holds smaller ones than a kernel does, and what is
/// infinite times them is infinite, not NaN.
Program WithUnderflowAsZero(Program program);

}  // namespace fusion
