#include "core/op/forms/sampling.h"

namespace fusion {

/// y = the index of the element at `offset` from the coordinate x, mirrored or clamped into the dim
OpDef DefineSampleIndex() { return SampleIndexOp(); }

}  // namespace fusion
