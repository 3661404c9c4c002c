#pragma once

#include <functional>

#include "core/device/device_spec.h"
#include "core/graph/program/program.h"

namespace fusion {

// Passes over a program before groups are chosen: products of matrices that a device computes
// faster, or whose weights it reads faster, with narrow elements. They return true if the program
// changed.

/// From this number of rows, the time of a product is bound by arithmetic, and both operands are
/// rounded. Below it is bound by reading weights, and only these are narrow. A choice, not a
/// measurement: with 8 rows every loaded weight is used eight times, and the register blocks of the
/// CPUs in core/device/specs have 4 to 14 rows.
inline constexpr int64_t kLeastRowsInHalf = 8;

/// Products with fewer weights stay as in the model: 4096 in f32 are 16 KiB, which fit in the first
/// cache of every device in core/device/specs. Reading half of that gains nothing but loses
/// precision. A choice, not a measurement.
inline constexpr int64_t kLeastNarrowWeights = 4096;

/// Called for an op that a pass would change or remove; true: it stays as it is. Null: no op is
/// excluded.
using LeaveProduct = std::function<bool(const LoopOp& product)>;

/// Rounds operands of matrix products to bf16 where a device then multiplies or reads them faster,
/// as Numerics::kFast allows. It applies to sums of products in f32 with exactly one operand known
/// before the first run; rows belong to the other one. The rounding is an op of the program
/// ("Cast"), so it fuses, packs and is checked like any other op. Sums stay in f32.
///
///   both operands   with at least kLeastRowsInHalf rows, on a device with a rate for bf16, if the
///                   unknown operand is contiguous along a reduced dim of at least
///                   DeviceSpec::LeastSumOf(bf16) elements
///   known operand   with fewer rows: the time is bound by reading weights
///
/// Relative to sum |a| |b| an element differs by at most 2^-8 + 2^-18 if both operands are rounded,
/// 2^-9 if one is, unless an operand exceeds the largest bf16, 2^128 - 2^120 (3.39e38): it then
/// becomes infinite. Infinite and NaN operands keep their values; denormal ones may count as zero.
/// 16-bit float operands of the model are rounded too, since it casts them to f32 for sums of
/// products: f16 loses three bits.
///
/// Unchanged: products of fewer than kLeastNarrowWeights weights, windows (convolutions), programs
/// with open dims, and any program for a device with explicit memory.
bool RoundProducts(const DeviceSpec& device, Program* program, const LeaveProduct& leave = nullptr);

/// Makes products of fewer than kLeastRowsInHalf rows read weights as they are stored, if there are
/// at least kLeastNarrowWeights of them and the model converts them to f32 first: casts of bf16 or
/// i8, and symmetric DequantizeLinear with one scale or one per column. The scale is applied to the
/// sum instead: sum x * (q * s) = (sum x * q) * s. The time of such products is bound by reading
/// weights.
///
/// Sums stay in f32 but round in another order: not for bitwise plans. Sums are larger by 1 / s
/// (smaller by s, above 1). Where that leaves the range of f32 (sums of |x * q| above 3.4e38 or,
/// with scales above 1, below 1.2e-38), results are infinite or lose precision that the order of
/// the model kept.
///
/// Unchanged: windows (convolutions), programs with open dims, and any program for a device with
/// explicit memory.
bool ReadNarrowWeights(const DeviceSpec& device, Program* program,
                       const LeaveProduct& leave = nullptr);

}  // namespace fusion
