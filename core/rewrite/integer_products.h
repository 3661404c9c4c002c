#pragma once

#include "core/rewrite/low_precision.h"

namespace fusion {

/// Multiplies 8-bit integers as they are stored where a model makes other numbers of them first:
/// DequantizeLinear in front of MatMul, Gemm or Conv, MatMulInteger, ConvInteger and what is
/// composed of them. With the operands (q - z) * s, zero points z and scales s the same along what
/// is summed up,
///
///   sum (a - za) sa (b - zb) sb = (sum a b - za sum b - zb sum a + K za zb) sa sb
///
/// Rows become u8 and columns i8, by 128 more or less where they are not, and zero points with
/// them. All of it are ops of the program, so that it fuses, packs and is checked like any other;
/// what follows from weights alone is computed once (sums of columns). Sums are in i32, exactly,
/// modulo 2^32.
///
///   in i32          a model that sums up integers itself: the same bits, for all numerics. Not of
///                   two matrices of a run with fewer than eight rows or columns
///   in f32          one operand known before the first run, zero points of the types of what is
///                   stored, and so few terms that no sum leaves i32: 2^31 / 255^2 = 33025, or
///                   65793 where one side is i8 without a zero point; on a device with a rate for
///                   i8, and where `f32` says so: more exact than sums in f32, but not their bits
///
/// In f32 results are out of range where sa * sb is (infinite, or zero below 1.4e-45), which the
/// order of the model may avoid; a scale that a run finds infinite gives infinities where the model
/// may have NaN (0 times infinity, differences of infinities). The other operand lies along a
/// summed dim, or is an image whose channels may (core/rewrite/layouts.h), eight of them or more:
/// sums then end along the channels. Zeros around an image become its zero point, so that sums of
/// columns are the same everywhere. Convolutions in groups and without a second spatial dim stay as
/// they are, and so does a program that leaves dims open. True if the program is another one than
/// before.
bool MultiplyIntegers(const DeviceSpec& device, bool f32, Program* program,
                      const LeaveProduct& leave = nullptr);

}  // namespace fusion
