#include "core/op/indexed/cumulative.h"

namespace fusion {

/// y[i] = the product of x[0] .. x[i] along `axis`. See CumulativeOp.
OpDef DefineCumProd() {
  OpDef def = CumulativeOp("CumProd", "prod");
  def.min_opset = 26;
  return def;
}

}  // namespace fusion
