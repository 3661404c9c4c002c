#include "core/op/indexed/random_numbers.h"

namespace fusion {

/// y of x's shape and, without `dtype`, its type: numbers that follow from `seed` and the place of
/// an element (core/op/indexed/random_numbers.h), uniform in [low, high)
OpDef DefineRandomUniformLike() {
  return RandomOp("RandomUniformLike", /*like=*/true, /*normal=*/false);
}

}  // namespace fusion
