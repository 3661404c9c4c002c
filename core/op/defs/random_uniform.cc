#include "core/op/indexed/random_numbers.h"

namespace fusion {

/// y of `shape`: numbers that follow from `seed` and the place of an element
/// (core/op/indexed/random_numbers.h), uniform in [low, high)
OpDef DefineRandomUniform() { return RandomOp("RandomUniform", /*like=*/false, /*normal=*/false); }

}  // namespace fusion
