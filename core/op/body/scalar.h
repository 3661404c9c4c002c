#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/tensor/dtype.h"

namespace fusion {

/// The scalar functions of the expression language. Their meaning is stated once, in scalar.cc: the
/// evaluator runs it, every backend spells it. Rules that differ between libraries are fixed here:
///   - max, min propagate NaN; comparisons with NaN are false, `ne` is true
///   - round is to nearest, ties to even
///   - integer arithmetic wraps; integer division truncates, x / 0 is 0
///   - float to integer truncates and saturates, NaN gives 0
///   - f32 expressions may keep more precision between operations; a cast rounds
enum class ScalarOp : uint8_t {
  kInput,   // leaf: element of input `index`
  kConst,   // leaf: a number
  kAxis,    // leaf: coordinate along axis `index`, i64
  kWithin,  // leaf: begin <= coordinate along axis `index` < end, bool
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,  // sign of the divisor (integers), sign of the dividend (floats)
  kMax,
  kMin,
  kPow,
  kNeg,
  kAbs,
  kSign,
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kErf,
  kTanh,
  kSigmoid,
  kSin,
  kCos,
  kFloor,
  kCeil,
  kRound,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kNot,
  kBitAnd,  // of integers, bit by bit as two's complement has them
  kBitOr,
  kBitXor,
  kIsNan,
  kIsInf,
  kSelect,  // condition ? a : b
  kCast,
  kBitCast,  // the bits of a value, rounded to its type, as those of another type of as many bits
};
inline constexpr int kScalarOpCount = static_cast<int>(ScalarOp::kBitCast) + 1;

/// kCast and kBitCast: the type of the result is part of the expression.
inline bool NamesItsType(ScalarOp op) { return op == ScalarOp::kCast || op == ScalarOp::kBitCast; }

/// How argument types determine the result type.
enum class ScalarTyping : uint8_t {
  kLeaf,
  kNumeric,   // T, T -> T       T float or integer
  kReal,      // T -> T          T float
  kCompare,   // T, T -> bool
  kLogic,     // bool -> bool
  kBits,      // T, T -> T       T integer
  kClassify,  // float -> bool
  kSelect,    // bool, T, T -> T
  kCast,      // any -> any
  kBitCast,   // float or integer -> float or integer of as many bits
};

struct ScalarInfo {
  std::string_view name;
  int arity;
  ScalarTyping typing;
  /// Throughput cost relative to an addition, for the benefit model; measured with
  /// tests/bench/scalar_cost.
  double cost;
};

const ScalarInfo& GetScalarInfo(ScalarOp op);
/// By ScalarInfo::name.
std::optional<ScalarOp> FindScalarOp(std::string_view name);

/// The meaning of a non-leaf float function in double precision (all arguments and the result are
/// floats).
double EvaluateReal(ScalarOp op, double a, double b);
/// The meaning on integers and bools, before wrapping to the element type.
int64_t EvaluateInteger(ScalarOp op, DType type, int64_t a, int64_t b);
/// Comparison and classification of floats: 0 or 1.
bool EvaluatePredicate(ScalarOp op, double a, double b);
/// The bits of a value of type `from`, a real or an integer, as one of type `to`. Floats have at
/// most 64 bits of meaning here, so that signalling NaNs become quiet ones.
struct ScalarValue {
  double real = 0;
  int64_t integer = 0;
};
ScalarValue EvaluateBitCast(DType from, DType to, const ScalarValue& value);
/// Whether the bits of one type can be those of the other: both float or integer, of as many bits.
bool CanBitCast(DType from, DType to);

/// `value` wrapped to the range of the integer type (identity for i64), or != 0 for bool.
int64_t WrapInteger(DType type, int64_t value);

}  // namespace fusion
