#include "core/op/indexed/cumulative.h"

namespace fusion {

/// y[i] = the sum of x[0] .. x[i] along `axis`. See CumulativeOp.
OpDef DefineCumSum() { return CumulativeOp("CumSum", "sum"); }

}  // namespace fusion
