#include "core/op/forms.h"

namespace fusion {

/// index of the first minimum along `axis`, of the last with `select_last_index`; NaN counts as
/// the minimum
OpDef DefineArgMin() { return IndexOfExtremum("ArgMin", "ReduceMin"); }

}  // namespace fusion
