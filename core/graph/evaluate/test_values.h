#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Random floats of mean 0 and standard deviation 1 (sum of four uniform numbers), integers 0..3,
/// bools.
HostTensor RandomTensor(const TensorType& type, uint64_t seed);

/// RandomTensor with NaN, infinities, -0 and subnormals sprinkled over the floats: about one
/// element in 23 of a small tensor, and few enough in a large one that most rows have none.
HostTensor AdversarialTensor(const TensorType& type, uint64_t seed);

/// One tensor per input of `program`. Inputs that index a dim hold valid indices of it. Integers
/// that are multiplied by large constants before they meet other data are 0 or 1, as masks are:
/// with (1 - mask) * -10000 anything else would drown scores in the rounding of large numbers.
/// Floats that a product sums over K are scaled by K^-1/4, so that results of sums stay near 1 and
/// exp() of them finite. Deterministic.
std::vector<HostTensor> RandomInputs(const Program& program, uint64_t seed, bool adversarial);

}  // namespace fusion
