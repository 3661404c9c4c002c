#include "core/op/body/narrowing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fusion {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double NarrowedValue(double x, DType from, DType to, const Narrowing& how) {
  CompiledExpr compiled(Narrowed(Expr::Input(0, from), to, how));
  const int64_t integer = static_cast<int64_t>(x);
  const CompiledExpr::Operand in = IsFloat(from) ? CompiledExpr::Operand{.reals = &x}
                                                 : CompiledExpr::Operand{.integers = &integer};
  return compiled.Evaluate(1, {in}, {}).reals[0];
}

// ONNX's tables of Cast, for every half.
TEST(Narrowing, EveryHalfSaturatesOrOverflows) {
  for (DType type : {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ}) {
    const double largest = LargestFinite(type);
    CompiledExpr saturated(Narrowed(Expr::Input(0, DType::kF16), type, {}));
    CompiledExpr open(Narrowed(Expr::Input(0, DType::kF16), type, {.saturate = false}));
    for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
      const double x = HalfToDouble(static_cast<uint16_t>(bits));
      const CompiledExpr::Operand in = {.reals = &x};
      const double rounded = RoundTo(type, x);
      const double got = saturated.Evaluate(1, {in}, {}).reals[0];
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(got));
      } else {
        EXPECT_EQ(got, std::isfinite(rounded) ? rounded : std::copysign(largest, x)) << x;
      }
      const double raw = open.Evaluate(1, {in}, {}).reals[0];
      EXPECT_TRUE(raw == rounded || (std::isnan(raw) && std::isnan(rounded))) << x;
    }
  }
}

TEST(Narrowing, IntegersSaturateToo) {
  const Narrowing open = {.saturate = false};
  EXPECT_EQ(NarrowedValue(100000, DType::kI32, DType::kF8E4M3FN, {}), 448);
  EXPECT_TRUE(std::isnan(NarrowedValue(100000, DType::kI32, DType::kF8E4M3FN, open)));
  EXPECT_EQ(NarrowedValue(-100000, DType::kI64, DType::kF8E5M2, open), -kInf);
  EXPECT_EQ(NarrowedValue(-3, DType::kI8, DType::kF8E5M2, {}), -3);
  EXPECT_EQ(NarrowedValue(7, DType::kI32, DType::kF4E2M1, {}), 6);
}

TEST(Narrowing, ScalesRoundAsAsked) {
  const struct {
    double x;
    double up;
    double down;
    double nearest;
  } cases[] = {{1, 1, 1, 1},
               {1.25, 2, 1, 1},
               {1.5, 2, 1, 2},
               {3, 4, 2, 4},
               {-2.5, 4, 2, 2},
               {0, 0x1p-127, 0x1p-127, 0x1p-127},
               {0x1p-140, 0x1p-127, 0x1p-127, 0x1p-127},
               {0x1.2p-127, 0x1p-126, 0x1p-127, 0x1p-127},
               {0x1.cp-127, 0x1p-126, 0x1p-127, 0x1p-126},
               {0x1.8p127, 0x1p127, 0x1p127, 0x1p127}};
  for (const auto& c : cases) {
    for (auto [mode, wanted] : {std::pair{Narrowing::kUp, c.up},
                                {Narrowing::kDown, c.down},
                                {Narrowing::kNearest, c.nearest}}) {
      EXPECT_EQ(NarrowedValue(c.x, DType::kF32, DType::kF8E8M0, {.mode = mode}), wanted)
          << c.x << " mode " << mode;
    }
  }
  const Narrowing open = {.saturate = false, .mode = Narrowing::kNearest};
  EXPECT_TRUE(std::isnan(NarrowedValue(0x1.8p127, DType::kF32, DType::kF8E8M0, open)));
  for (double x : {kInf, -kInf, std::nan("")}) {
    EXPECT_TRUE(std::isnan(NarrowedValue(x, DType::kF32, DType::kF8E8M0, {})));
    EXPECT_TRUE(std::isnan(NarrowedValue(x, DType::kF32, DType::kF8E8M0, open)));
  }
}

TEST(BitCasts, SwapNumbersAndTheirBits) {
  const double one = 1;
  const int64_t bits = 0x40490fdb;
  CompiledExpr to(Expr::BitCast(Expr::Input(0, DType::kF32), DType::kI32));
  EXPECT_EQ(to.Evaluate(1, {{.reals = &one}}, {}).integers[0], 0x3f800000);
  CompiledExpr from(Expr::BitCast(Expr::Input(0, DType::kI32), DType::kF32));
  EXPECT_FLOAT_EQ(static_cast<float>(from.Evaluate(1, {{.integers = &bits}}, {}).reals[0]),
                  3.14159274F);
  const double minus = -0.0;
  CompiledExpr half(Expr::BitCast(Expr::Input(0, DType::kF16), DType::kI16));
  EXPECT_EQ(half.Evaluate(1, {{.reals = &minus}}, {}).integers[0], -32768);
  EXPECT_TRUE(CanBitCast(DType::kF8E5M2, DType::kU8));
  EXPECT_FALSE(CanBitCast(DType::kF32, DType::kI64));
  EXPECT_FALSE(CanBitCast(DType::kBool, DType::kU8));
}

}  // namespace
}  // namespace fusion
