#pragma once

#include <functional>

#include "core/device/device_spec.h"
#include "core/graph/program/program.h"

namespace fusion {

// Passes over programs that plans are made from, before anything else is decided: products of
// matrices that a device computes, or reads the weights of, faster with narrow elements. True if
// the program is another one than before.

/// From so many rows on a product is as fast as it multiplies, and both operands are rounded; with
/// fewer it is as fast as its weights are read, and these alone are narrow. A choice, not a
/// measurement: with 8 rows every weight that is loaded is used eight times, and the register
/// blocks of the CPUs in core/device/specs have 4 to 14 rows.
inline constexpr int64_t kLeastRowsInHalf = 8;

/// Products of fewer weights stay as the model states them: 4096 in f32 are 16 KiB, which lie in
/// the nearest cache of every device in core/device/specs, so that reading half of it gains
/// nothing while results lose places. A choice, not a measurement.
inline constexpr int64_t kLeastNarrowWeights = 4096;

/// Asked of a product that a pass would change: true leaves it as it is. Null: none is left.
using LeaveProduct = std::function<bool(const LoopOp& product)>;

/// Rounds operands of matrix products to bf16 where a device multiplies or reads them faster, as
/// Numerics::kFast allows: sums of products in f32 of which one operand is known before the first
/// run. The rounding is an op of the program ("Cast"), so that it fuses, packs and is checked like
/// any other; sums stay in f32.
///
///   both operands   on a device with a rate for bf16, from kLeastRowsInHalf rows on, where the
///                   other operand lies along a summed dim, which must be as long as the unit of
///                   the device wants (DeviceSpec::LeastSumOf)
///   the known one   with fewer rows: the product is as fast as its weights are read
///
/// Relative to sum |a| |b| an element differs by at most 2^-8 + 2^-18 with both, 2^-9 with one, as
/// long as no operand is beyond the largest bf16, 2^128 - 2^120 (3.39e38): what rounds to more is
/// infinite. Operands that are infinite or NaN stay so; denormal ones may count as zero. A rounding
/// of its own is what a model's 16-bit floats get as well, cast to f32 as they are for sums of
/// products: f16 operands lose three places. Products of fewer than kLeastNarrowWeights weights
/// stay as they are, and so do windows (convolutions) and a program that leaves dims open.
bool RoundProducts(const DeviceSpec& device, Program* program, const LeaveProduct& leave = nullptr);

/// Lets products of few rows (fewer than kLeastRowsInHalf) read weights as they are stored, at
/// least kLeastNarrowWeights of them, where a model makes f32 of them first: casts of bf16 or i8,
/// and symmetric DequantizeLinear with one scale or one for each column, which then multiplies what
/// is summed up: sum x * (q * s) = (sum x * q) * s. The products are as fast as their weights are
/// read. Sums stay in f32, in another order of roundings: not for bitwise plans. What is summed up
/// is larger by 1 / s (less by s, above 1): where that leaves the range of f32, with |x * q| sums
/// beyond 3.4e38 or, behind scales above 1, below 1.2e-38, results are infinite or lose places that
/// the order of the model kept.
bool ReadNarrowWeights(const DeviceSpec& device, Program* program,
                       const LeaveProduct& leave = nullptr);

}  // namespace fusion
