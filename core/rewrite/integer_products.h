#pragma once

#include "core/rewrite/low_precision.h"

namespace fusion {

/// Rewrites products to multiply 8-bit integers as they are stored, where the model converts them
/// first: DequantizeLinear before MatMul, Gemm or Conv; MatMulInteger; ConvInteger; and
/// compositions of these. For operands (q - z) * s with zero points z and scales s that do not vary
/// along the reduced dims,
///
///   sum (a - za) sa (b - zb) sb = (sum a b - za sum b - zb sum a + K za zb) sa sb
///
/// Rows become u8 and columns i8: elements and zero points are shifted by 128 where their type
/// differs. Every step is an op of the program, so it fuses, packs and is checked like any other
/// op. Values of weights alone (sums of columns) are computed once. Sums are exact in i32,
/// modulo 2^32.
///
///   model sums in i32   for all numerics, bit-identical. Not for two matrices that are both known
///                       only at run time if there are fewer than 8 rows or columns
///   model sums in f32   only if `f32`, on a device with a rate for i8; more accurate than sums in
///                       f32, but not bit-identical. One operand must be known before the first
///                       run, zero points must have the type of the stored elements, and no sum may
///                       leave i32: at most 2^31 / 255^2 = 33025 terms, or 65793 where one side is
///                       i8 without a zero point
///
/// The first operand gives the columns if it is known before the first run, otherwise the second
/// one. For products in f32 and for windows the rows must be contiguous along a reduced dim, or be
/// an image with at least 8 channels, which can become innermost (core/rewrite/layouts.h); the sum
/// then runs along the channels last. Zeros that pad an image become its zero point, so that sums
/// of columns are the same everywhere.
///
/// In f32 a result is out of range where sa * sb is (infinite, or zero below 1.4e-45); the order of
/// operations in the model may avoid that. A scale that is infinite at run time gives infinities
/// where the model may give NaN (0 times infinity, differences of infinities).
///
/// Unchanged: grouped convolutions, convolutions without a second spatial dim, programs with open
/// dims, and any program for a device with explicit memory. `leave` as in LeaveProduct. True if the
/// program changed.
bool MultiplyIntegers(const DeviceSpec& device, bool f32, Program* program,
                      const LeaveProduct& leave = nullptr);

}  // namespace fusion
