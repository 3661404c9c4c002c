#pragma once

#include "core/op/op_def.h"

namespace fusion {

/// Random numbers as a pure function of a seed and the position of an element: independent of
/// tiling, machine and run.
///
///   h(x): x ^= x >> 16; x *= 0x7feb352d; x ^= x >> 15; x *= 0x846ca68b; x ^= x >> 16   (32 bits)
///   r(i, k) = h(h(i ^ a_k) + b_k)      i: row-major position of the element, modulo 2^32
///   a_k, b_k: the high and low half of output k + 1 of SplitMix64, whose state is the bits of the
///             seed, an f32
///   uniform(i) = (r(i, 0) >> 8) / 2^24, in [0, 1)
///   normal(i)  = sqrt(-2 log(1 - u)) cos(2 pi v), where u and v are uniform from r(i, 0), r(i, 1)
///
/// Not cryptographic. ONNX does not specify the generator.

/// The attributes "dtype", "seed", `floats` and, unless `like`, "shape".
std::vector<ParamSpec> RandomParams(std::vector<std::string> floats, bool like);

/// Definition of an op with random elements: uniform in ["low", "high") or, if `normal`, with
/// "mean" and "scale" (attributes). The shape is attribute "shape" or, if `like`, that of input 0.
/// Computed in f64 if that is the type, else in f32. Unimplemented for symbolic dims and without a
/// seed.
OpDef RandomOp(const char* name, bool like, bool normal);

/// uniform(i) in [0, 1) from r(i, stream), of `type` (f32 or f64), for each point of `axes`, which
/// are numbered row-major. Unimplemented for symbolic extents.
absl::StatusOr<Expr> UniformNumbers(const std::vector<LoopAxis>& axes, double seed, int stream,
                                    DType type);

/// Attribute "seed". Unimplemented if it is absent: the importer sets it for nodes that have none.
absl::StatusOr<double> SeedOf(const OpCall& call);

/// OpDef::normalise: replaces ONNX's number in attribute "dtype" by the name of the element type.
/// Unimplemented for an unsupported type.
absl::Status NormaliseRandomType(OnnxCall& call);

/// Whether the op of this name draws random numbers: its nodes need a seed.
bool DrawsNumbers(std::string_view op);

}  // namespace fusion
