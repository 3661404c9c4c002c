#pragma once

#include "core/op/op_def.h"

namespace fusion {

/// Random numbers that follow from a seed and the place of an element alone, so that they are the
/// same however a plan cuts the tensor, on every machine, at every run:
///
///   h(x): x ^= x >> 16; x *= 0x7feb352d; x ^= x >> 15; x *= 0x846ca68b; x ^= x >> 16   (32 bits)
///   r(i, k) = h(h(i ^ a_k) + b_k)      i: row-major number of the element, modulo 2^32
///   a_k, b_k: the high and low half of output k + 1 of SplitMix64, whose state is the bits of the
///             seed, an f32
///   uniform(i) = (r(i, 0) >> 8) / 2^24, in [0, 1)
///   normal(i)  = sqrt(-2 log(1 - u)) cos(2 pi v), u and v being uniform of r(i, 0) and r(i, 1)
///
/// No source of cryptographic quality. ONNX leaves the generator open.

/// Parameters "dtype", "seed", these numbers and, unless the shape is that of input 0 (`like`),
/// "shape".
std::vector<ParamSpec> RandomParams(std::vector<std::string> floats, bool like);

/// An op whose elements are such numbers, uniform in [low, high) or normal with mean and scale,
/// each an attribute; of the shape that attribute "shape" says or, `like`, of input 0. Computed in
/// f32, or f64 where that is the type. Unimplemented for symbolic dims and a call without a seed.
OpDef RandomOp(const char* name, bool like, bool normal);

/// A number in [0, 1) for each element, of `type`, f32 or f64, numbered row by row along all axes.
absl::StatusOr<Expr> UniformNumbers(const std::vector<LoopAxis>& axes, double seed, int stream,
                                    DType type);

/// InvalidArgument unless attribute "seed" is there: the importer gives nodes without one a seed.
absl::StatusOr<double> SeedOf(const OpCall& call);

/// ONNX says element types as numbers; ours are names.
absl::Status NormaliseRandomType(OnnxCall& call);

/// Whether an op draws numbers, so that its nodes have a seed.
bool DrawsNumbers(std::string_view op);

}  // namespace fusion
