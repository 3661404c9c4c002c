#pragma once

#include "core/rewrite/low_precision.h"

namespace fusion {

/// Lets ops that pick elements of a computed value by an index (Gather, GatherElements, GatherND)
/// compute those elements from what the value is made of, so that the value need not lie in memory.
/// Element-wise ops are computed at the picked places alone:
///
///   y[m] = p[m, t[m]], p[m, v] = x[m, v] - s[m]   ->   y[m] = x[m, t[m]] - s[m]
///
/// If that ends at values which lie in memory anyway (inputs, weights), it is done. If it ends at
/// the result of a reduction, such as a matrix product, of which others make one number along the
/// dim that is indexed (a softmax over the classes of a language model), then the pick is a
/// reduction along that dim like theirs, and one pass over the dim serves all of them:
///
///   y[m] = max over v of select(v == t[m], x[m, v], -inf)
///
/// Every other pick stays as it is. Results have the same bits. Not in programs that leave dims
/// open. `leave` is asked for the ops that would be computed otherwise: true, and they stay. True
/// if the program is another one than before.
bool PickBeforeStoring(Program* program, const LeaveProduct& leave = nullptr);

}  // namespace fusion
