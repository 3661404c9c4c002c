#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/tensor/dtype.h"

namespace fusion {

/// The scalar functions of the expression language. scalar.cc defines their meaning; the evaluator
/// executes it, and backends generate code with the same result. Rules that differ between
/// libraries are fixed here:
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
  kBitAnd,  // integers, bit by bit, two's complement
  kBitOr,
  kBitXor,
  kIsNan,
  kIsInf,
  kSelect,  // condition ? a : b
  kCast,
  kBitCast,  // the bits of a value, rounded to its type, as another type of the same width
};
inline constexpr int kScalarOpCount = static_cast<int>(ScalarOp::kBitCast) + 1;

/// Whether the result type is part of the expression, not derived from the arguments.
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
  kBitCast,   // float or integer -> float or integer of the same width
};

struct ScalarInfo {
  std::string_view name;
  int arity;
  ScalarTyping typing;
  /// Throughput cost for the benefit model, addition = 1; measured with tests/bench/scalar_cost.
  double cost;
};

const ScalarInfo& GetScalarInfo(ScalarOp op);
/// The op with this ScalarInfo::name, or nullopt.
std::optional<ScalarOp> FindScalarOp(std::string_view name);

/// The three functions below evaluate one op on arguments of one type. Functions of one argument
/// ignore `b`. Leaves, kSelect and casts are not evaluated here: they abort.

/// Value of a function whose arguments and result are floats, in double precision.
double EvaluateReal(ScalarOp op, double a, double b);
/// Value of a function of integers or bools (comparisons: 0 or 1). `type` is the type of the
/// arguments. The caller wraps the value to the result type (WrapInteger).
int64_t EvaluateInteger(ScalarOp op, DType type, int64_t a, int64_t b);
/// Value of a comparison or classification of floats.
bool EvaluatePredicate(ScalarOp op, double a, double b);
/// A scalar of any type: `real` for float types, else `integer`.
struct ScalarValue {
  double real = 0;
  int64_t integer = 0;
};
/// The bits of `value`, of type `from`, as a value of type `to`. Requires CanBitCast(from, to). A
/// float goes through a double, so that a signalling NaN becomes a quiet one.
ScalarValue EvaluateBitCast(DType from, DType to, const ScalarValue& value);
/// Whether both types have the same width in bits and neither is bool.
bool CanBitCast(DType from, DType to);

/// `value` wrapped to the range of the integer type (identity for i64), or != 0 for bool.
int64_t WrapInteger(DType type, int64_t value);

}  // namespace fusion
