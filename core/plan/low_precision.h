#pragma once

#include "core/device/device_spec.h"
#include "core/graph/program.h"

namespace fusion {

// Passes over programs that plans are made from, before anything else is decided.

/// Rounds operands of matrix products to bf16 where a device multiplies or reads them faster, as
/// Numerics::kFast allows: sums of products in f32 of which one operand is known before the first
/// run. The rounding is an op of the program ("Cast"), so that it fuses, packs and is checked like
/// any other; sums stay in f32.
///
///   both operands   on a device with a rate for bf16, from kLeastRowsInHalf rows on, where the
///                   other operand lies along a summed dim
///   the known one   with fewer rows: the product is as fast as its weights are read
///
/// Relative to sum |a| |b| an element differs by at most 2^-8 + 2^-18 with both, 2^-9 with one.
/// Operands that are infinite or NaN stay so; denormal ones may count as zero. Products of fewer
/// than kLeastRoundedElements weights stay as they are, and so does a program that leaves dims
/// open.
void RoundProducts(const DeviceSpec& device, Program* program);

/// Lets products of few rows read weights as they are stored, where a model makes f32 of them
/// first: casts of bf16 or i8, and symmetric DequantizeLinear with one scale or one for each
/// column, which then multiplies what is summed up: sum x * (q * s) = (sum x * q) * s. The products
/// are as fast as their weights are read. Sums stay in f32, in another order of roundings: not for
/// bitwise plans.
void ReadNarrowWeights(const DeviceSpec& device, Program* program);

inline constexpr int64_t kLeastRowsInHalf = 8;
inline constexpr int64_t kLeastRoundedElements = 4096;

}  // namespace fusion
