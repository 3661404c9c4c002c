#include "core/op/forms/sampling.h"

namespace fusion {

/// y = the coordinate, in elements, of the place x between -1 and 1 along a dim of `extent`:
/// rounded with a nearest filter, moved inside as `padding` says
OpDef DefineSampleCoordinate() { return SampleCoordinateOp(); }

}  // namespace fusion
