#pragma once

#include <string>

#include "core/device/device_spec.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// The form of a kernel: what its estimate can be wrong about in the same way. The first that
/// applies:
///   "opaque"            calls an op that is not expressed in loops
///   "scatter"           steps that run only at places that an index tensor gives
///   "streamed product"  products in a loop over tiles, with reductions that follow tile by tile
///   "product"           products; and what is computed on their results
///   "split reduction"   states of several blocks that are merged
///   "reduction"         reductions without products
///   "copy"              no arithmetic
///   "element-wise"      all else
std::string FormOf(const Schedule& schedule);

/// The type whose rates apply to the products of the schedule (DeviceSpec::Rates): the one of most
/// multiplications, "f32" for types that the spec has no rates for. Empty: no products.
std::string ProductTypeOf(const Schedule& schedule, const DeviceSpec& device);

}  // namespace fusion
