#include "core/op/forms.h"

namespace fusion {

/// index of the first maximum along `axis`, of the last with `select_last_index`; NaN counts as
/// the maximum
OpDef DefineArgMax() { return IndexOfExtremum("ArgMax", "ReduceMax"); }

}  // namespace fusion
