#pragma once

#include "core/op/body/expr.h"
#include "core/op/body/index_map.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// A constant as a function of its coordinates axis(0), axis(1), ...; an empty Expr if none is
/// found. Recognised forms:
/// - integers that are affine in the coordinates (positions);
/// - integers and bools with a single value;
/// - constants with two values, if bounds on coordinates and on differences of two coordinates
///   describe the region of one of them exactly (causal, banded and prefix masks).
///
/// Floats of fewer than two dims count as weights: kernels take them as arguments, so layers share
/// the kernel. Examines every element, not how the constant was made. Pure.
Expr CoordinateForm(const HostTensor& constant);

/// The same function at other coordinates: axis(d) is replaced by `index[d]`, which must not read a
/// tensor.
Expr AtIndex(const Expr& form, const IndexMap& index);

}  // namespace fusion
