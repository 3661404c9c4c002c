#pragma once

#include "core/rewrite/low_precision.h"

namespace fusion {

/// Values of at least this rank are images, with channels in dim 1. Values of lower rank are
/// already contiguous along the reduced dim.
inline constexpr size_t kImageRank = 4;
inline constexpr size_t kChannelDim = 1;

/// Chooses the storage order (Value::order) of intermediate images. Where a product with a known
/// operand (a convolution) makes columns of the channels of its result, the channels become
/// innermost in memory, through all element-wise, padding and pooling ops between such products.
/// Rows of the products are then contiguous along the sum, and results are written along vectors.
/// Inputs and outputs keep their order.
///
/// Only values of static shape that no op but loop ops reads or writes change. Unchanged: programs
/// with open dims, and any program for a device with explicit memory. `leave` is called for each op
/// that reads or writes a value whose order would change; true: the values of that op keep their
/// order. True if the program changed.
bool StoreColumnsInnermost(const DeviceSpec& device, Program* program,
                           const LeaveProduct& leave = nullptr);

}  // namespace fusion
