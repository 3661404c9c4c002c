#include "core/op/body/narrowing.h"

namespace fusion {
namespace {

constexpr int64_t kMagnitude = 0x7fffffff;
constexpr int64_t kExponent = 0x7f800000;  // infinity, too
constexpr int64_t kFirstNormal = 0x00800000;
constexpr int64_t kLargestPower = 0x7f000000;
constexpr int64_t kHalfStep = 0x00400000;

Expr Bits(int64_t value) { return Expr::ConstInt(DType::kI32, value); }
Expr And(const Expr& a, int64_t b) { return Expr::Binary(ScalarOp::kBitAnd, a, Bits(b)); }

// The power of two that the bits of a magnitude of f32 are rounded to; 0 means the smallest one.
Expr PowerOfTwo(const Expr& magnitude, const Narrowing& how) {
  auto below = [&](int64_t border) { return Expr::Binary(ScalarOp::kLt, magnitude, Bits(border)); };
  Expr down = And(magnitude, kExponent);
  if (how.mode == Narrowing::kDown) return down;
  const int64_t step = how.mode == Narrowing::kUp ? kFirstNormal - 1 : kHalfStep;
  Expr power = And(magnitude + Bits(step), kExponent);
  if (how.saturate) power = Expr::Binary(ScalarOp::kMin, power, Bits(kLargestPower));
  // Below the normal numbers of f32 there is one more power, 2^-127.
  const int64_t first = how.mode == Narrowing::kUp ? kHalfStep + 1 : kHalfStep + kHalfStep / 2;
  power = Expr::Select(below(first), Bits(0), power);
  return Expr::Select(below(kExponent), power, Bits(kExponent));
}

}  // namespace

Expr Narrowed(const Expr& x, DType type, const Narrowing& how) {
  // As integers of one width become narrower ones.
  if (IsNarrowInteger(type) && IsFloat(x.type())) {
    return Expr::Cast(Expr::Cast(x, DType::kI32), type);
  }
  const bool is_scale = type == DType::kF8E8M0;
  const bool has_choice = IsNarrowFloat(type) && DTypeBits(type) == 8 && x.type() != type;
  if (!has_choice) return Expr::Cast(x, type);
  // Integers that f32 rounds are beyond every float of 8 bits but f8e8m0, which rounds from f32.
  const bool wide = IsFloat(x.type()) && !IsNarrowFloat(x.type()) && !is_scale;
  const Expr real = wide ? x : Expr::Cast(x, DType::kF32);
  if (is_scale) {
    if (how.mode == Narrowing::kUp && how.saturate) return Expr::Cast(real, type);
    const Expr magnitude = And(Expr::BitCast(real, DType::kI32), kMagnitude);
    return Expr::Cast(Expr::BitCast(PowerOfTwo(magnitude, how), DType::kF32), type);
  }
  if (!how.saturate) return Expr::Cast(real, type);
  const double largest = LargestFinite(type);
  auto bound = [&](double value) { return Expr::Const(real.type(), value); };
  Expr within = Expr::Binary(ScalarOp::kMin, real, bound(largest));
  within = Expr::Binary(ScalarOp::kMax, within, bound(-largest));
  return Expr::Cast(within, type);
}

}  // namespace fusion
