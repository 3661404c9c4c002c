#pragma once

#include "core/device/target.h"
#include "core/tensor/dtype.h"

namespace fusion {

/// Does `n` steps and returns the operations that it did.
using WorkLoop = double (*)(long n);

// Loops that only multiply and add, in registers; each needs the instructions of its name. A
// multiplication and an addition count as two operations.
double MultiplyAdd128(long n);  // f32: SSE
double MultiplyAdd256(long n);  // AVX2 with FMA
double MultiplyAdd512(long n);  // AVX-512
double DotBf16(long n);         // bf16: AVX-512 with BF16
double DotI8(long n);           // 8-bit integers: AVX-512 with VNNI
double TilesBf16(long n);       // AMX, operands from L1
double TilesI8(long n);

/// The loop for products of `type` with the instructions of `isa`; null if it has none for them.
WorkLoop ProductLoop(DType type, Isa isa);

/// Chains of additions of f32 over arrays in L1; only additions count: ScalarInfo::cost units.
WorkLoop AdditionLoop(Isa isa);

}  // namespace fusion
