#include "core/op/indexed/random_numbers.h"

namespace fusion {

/// y of x's shape and, without `dtype`, its type: numbers that follow from `seed` and the place of
/// an element (core/op/indexed/random_numbers.h), normal with `mean` and deviation `scale`
OpDef DefineRandomNormalLike() {
  return RandomOp("RandomNormalLike", /*like=*/true, /*normal=*/true);
}

}  // namespace fusion
