#pragma once

#include "core/rewrite/low_precision.h"

namespace fusion {

/// Changes ops that pick elements of a computed value by an index (Gather, GatherElements,
/// GatherND): they compute these elements from the operands of the value, so that the value need
/// not be stored. Element-wise ops are computed at the picked coordinates only:
///
///   y[m] = p[m, t[m]], p[m, v] = x[m, v] - s[m]   ->   y[m] = x[m, t[m]] - s[m]
///
/// This is done if it ends at values that are in memory anyway (inputs, weights). It may also end
/// at the result of a reduction, such as a matrix product, that other ops reduce along the indexed
/// dim (a softmax over the classes of a language model). The pick then becomes a reduction along
/// that dim too, and one pass over the dim serves all of them:
///
///   y[m] = max over v of select(v == t[m], x[m, v], -inf)
///
/// Every other pick stays as it is. Results are bit-identical. Programs with open dims are
/// unchanged. `leave` as in LeaveProduct. True if the program changed.
bool PickBeforeStoring(Program* program, const LeaveProduct& leave = nullptr);

}  // namespace fusion
