#pragma once

#include "core/op/body/expr.h"
#include "core/op/body/index_map.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// A constant as a function of its coordinates, over axis(0), axis(1), ...; empty if it is not
/// found to be one. Found are whole numbers that are affine in the coordinates (positions), whole
/// numbers and bools of one value, and constants of two values of which one fills exactly what
/// bounds on coordinates and on differences of two of them leave (masks: causal, banded, of a
/// prefix). Floats of fewer than two dims are weights, whatever they hold: a kernel takes them as
/// arguments, so that layers share it. By looking at every element, not at how it was made. Pure.
Expr CoordinateForm(const HostTensor& constant);

/// The same function of other coordinates: axis(d) is `index[d]`, which reads no tensor.
Expr AtIndex(const Expr& form, const IndexMap& index);

}  // namespace fusion
