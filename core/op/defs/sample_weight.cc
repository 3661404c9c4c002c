#include "core/op/forms/sampling.h"

namespace fusion {

/// y = the weight of the element at `offset` from the coordinate x in a linear or cubic filter
OpDef DefineSampleWeight() { return SampleWeightOp(); }

}  // namespace fusion
