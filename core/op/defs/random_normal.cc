#include "core/op/indexed/random_numbers.h"

namespace fusion {

/// y of `shape`: numbers that follow from `seed` and the place of an element
/// (core/op/indexed/random_numbers.h), normal with `mean` and deviation `scale`
OpDef DefineRandomNormal() { return RandomOp("RandomNormal", /*like=*/false, /*normal=*/true); }

}  // namespace fusion
