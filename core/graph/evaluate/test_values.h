#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Random values: floats with mean 0 and standard deviation 1 (sum of four uniform numbers),
/// integers 0..3, bools.
HostTensor RandomTensor(const TensorType& type, uint64_t seed);

/// RandomTensor with NaN, infinities, -0 and subnormals among the floats: about 1 element in 23 of
/// a small tensor; in a large one so few that most rows have none.
HostTensor AdversarialTensor(const TensorType& type, uint64_t seed);

/// One tensor per input of `program`. Deterministic. Inputs that index a dim hold valid indices of
/// it. Integers that are multiplied by a large constant before they meet other data are 0 or 1, as
/// masks are: otherwise (1 - mask) * -10000 would make scores vanish in rounding. Floats that a
/// product sums over K are scaled by K^-1/4, so that sums stay near 1 and exp() of them is finite.
std::vector<HostTensor> RandomInputs(const Program& program, uint64_t seed, bool adversarial);

}  // namespace fusion
