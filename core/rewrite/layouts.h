#pragma once

#include "core/rewrite/low_precision.h"

namespace fusion {

/// Values of so many dims are images, dim 1 their channels: values of fewer lie along the sum as
/// they are.
inline constexpr size_t kImageRank = 4;
inline constexpr size_t kChannelDim = 1;

/// Chooses the storage order of intermediate values, before anything else is decided: where a
/// product with a known operand (a convolution) makes columns of one dim of its result, that dim is
/// innermost in memory, through all element-wise, padding and pooling ops between such products.
/// Their rows then lie next to each other along the sum and are written along vectors; other orders
/// stay at the edges, where inputs are read and outputs written. Only values that nothing but loops
/// reads, with dims that are known; not where memory is explicit. `leave` is asked for the ops
/// whose values would lie otherwise than their dims stand: true, and they stay. True if the program
/// is another one than before.
bool StoreColumnsInnermost(const DeviceSpec& device, Program* program,
                           const LeaveProduct& leave = nullptr);

}  // namespace fusion
