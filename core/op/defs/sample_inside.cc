#include "core/op/forms/sampling.h"

namespace fusion {

/// y = whether a dim of `extent` has the element at `offset` from the coordinate x
OpDef DefineSampleInside() { return SampleInsideOp(); }

}  // namespace fusion
