#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/tensor/host_tensor.h"

// Floats of at most 8 bits and integers of less, bit by bit.

namespace fusion {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr DType kNarrowFloats[] = {DType::kF8E4M3FN,   DType::kF8E4M3FNUZ, DType::kF8E5M2,
                                   DType::kF8E5M2FNUZ, DType::kF8E8M0,     DType::kF6E2M3,
                                   DType::kF6E3M2,     DType::kF4E2M1};

// From the tables of the OCP's and ONNX's texts.
TEST(NarrowFloats, CodesMeanWhatTheirStandardsSay) {
  const struct {
    DType type;
    uint64_t code;
    double value;
  } cases[] = {
      {DType::kF8E4M3FN, 0x01, 0x1p-9},    {DType::kF8E4M3FN, 0x08, 0x1p-6},
      {DType::kF8E4M3FN, 0x38, 1},         {DType::kF8E4M3FN, 0x7e, 448},
      {DType::kF8E4M3FN, 0xfe, -448},      {DType::kF8E4M3FN, 0x80, -0.0},
      {DType::kF8E4M3FNUZ, 0x01, 0x1p-10}, {DType::kF8E4M3FNUZ, 0x40, 1},
      {DType::kF8E4M3FNUZ, 0x7f, 240},     {DType::kF8E4M3FNUZ, 0xff, -240},
      {DType::kF8E5M2, 0x01, 0x1p-16},     {DType::kF8E5M2, 0x3c, 1},
      {DType::kF8E5M2, 0x7b, 57344},       {DType::kF8E5M2, 0x7c, kInf},
      {DType::kF8E5M2, 0xfc, -kInf},       {DType::kF8E5M2FNUZ, 0x01, 0x1p-17},
      {DType::kF8E5M2FNUZ, 0x40, 1},       {DType::kF8E5M2FNUZ, 0x7f, 57344},
      {DType::kF8E8M0, 0x00, 0x1p-127},    {DType::kF8E8M0, 0x7f, 1},
      {DType::kF8E8M0, 0xfe, 0x1p127},     {DType::kF6E2M3, 0x01, 0.125},
      {DType::kF6E2M3, 0x1f, 7.5},         {DType::kF6E2M3, 0x3f, -7.5},
      {DType::kF6E3M2, 0x01, 0.0625},      {DType::kF6E3M2, 0x1f, 28},
      {DType::kF4E2M1, 0x01, 0.5},         {DType::kF4E2M1, 0x07, 6},
      {DType::kF4E2M1, 0x0f, -6},
  };
  for (const auto& c : cases) {
    const double value = DoubleFromBits(c.type, c.code);
    EXPECT_EQ(value, c.value) << DTypeName(c.type) << " " << c.code;
    EXPECT_EQ(std::signbit(value), std::signbit(c.value)) << DTypeName(c.type) << " " << c.code;
  }
  for (auto [type, code] : {std::pair{DType::kF8E4M3FN, 0x7f},
                            {DType::kF8E4M3FN, 0xff},
                            {DType::kF8E4M3FNUZ, 0x80},
                            {DType::kF8E5M2, 0x7d},
                            {DType::kF8E5M2, 0xff},
                            {DType::kF8E5M2FNUZ, 0x80},
                            {DType::kF8E8M0, 0xff}}) {
    EXPECT_TRUE(std::isnan(DoubleFromBits(type, static_cast<uint64_t>(code)))) << DTypeName(type);
  }
}

TEST(NarrowFloats, EveryCodeComesBack) {
  for (DType type : kNarrowFloats) {
    for (uint64_t code = 0; code < uint64_t{1} << DTypeBits(type); ++code) {
      const double value = DoubleFromBits(type, code);
      const uint64_t back = BitsFromDouble(type, value);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(DoubleFromBits(type, back))) << DTypeName(type) << " " << code;
      } else {
        EXPECT_EQ(back, code) << DTypeName(type);
        EXPECT_EQ(RoundTo(type, value), value) << DTypeName(type) << " " << code;
      }
      // Bits above those of the type do not count.
      if (!std::isnan(value)) {
        EXPECT_EQ(DoubleFromBits(type, code | uint64_t{0xff} << DTypeBits(type)), value);
      }
    }
  }
}

// What is nearest, found by looking at all values.
double Nearest(DType type, double x) {
  double best = 0;
  uint64_t best_code = 0;
  double distance = kInf;
  for (uint64_t code = 0; code < uint64_t{1} << (DTypeBits(type) - 1); ++code) {
    const double value = DoubleFromBits(type, code);
    if (!std::isfinite(value)) continue;
    const double d = std::fabs(value - std::fabs(x));
    if (d > distance) continue;
    const bool tie = d == distance && code % 2 != 0;
    if (!tie) {
      best = value;
      best_code = code;
    }
    distance = d;
  }
  // Beyond the largest value the next one would follow by the same step.
  const double step = best - DoubleFromBits(type, best_code - 1);
  const bool over =
      best == LargestFinite(type) &&
      (std::fabs(x) > best + step / 2 || (std::fabs(x) == best + step / 2 && best_code % 2 != 0));
  if (over && type == DType::kF8E5M2) return std::copysign(kInf, x);
  if (over && DTypeBits(type) == 8) return std::nan("");
  if (best == 0 && (type == DType::kF8E4M3FNUZ || type == DType::kF8E5M2FNUZ)) return 0;
  return std::copysign(best, x);
}

TEST(NarrowFloats, EveryHalfRoundsToTheNearestValue) {
  for (DType type : kNarrowFloats) {
    if (type == DType::kF8E8M0) continue;
    int wrong = 0;
    for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
      const double x = HalfToDouble(static_cast<uint16_t>(bits));
      const double got = RoundTo(type, x);
      if (std::isnan(x)) {
        wrong += DTypeBits(type) == 8 ? !std::isnan(got) : got != 0;
        continue;
      }
      if (std::isinf(x)) {
        wrong += type == DType::kF8E5M2 ? got != x
                 : DTypeBits(type) == 8 ? !std::isnan(got)
                                        : got != std::copysign(LargestFinite(type), x);
        continue;
      }
      const double wanted = Nearest(type, x);
      const bool same = (std::isnan(got) && std::isnan(wanted)) ||
                        (got == wanted && std::signbit(got) == std::signbit(wanted));
      if (!same && ++wrong == 1) {
        ADD_FAILURE() << DTypeName(type) << ": " << x << " became " << got << ", not " << wanted;
      }
    }
    EXPECT_EQ(wrong, 0) << DTypeName(type);
  }
}

TEST(NarrowFloats, ScalesRoundUpToPowersOfTwo) {
  for (auto [x, wanted] : {std::pair{0.0, 0x1p-127},
                           {0x1p-149, 0x1p-127},
                           {0x1p-127, 0x1p-127},
                           {0x1.8p-127, 0x1p-126},
                           {1.0, 1.0},
                           {1.0001, 2.0},
                           {-3.0, 4.0},
                           {0x1p127, 0x1p127},
                           {0x1.8p127, 0x1p127}}) {
    EXPECT_EQ(RoundTo(DType::kF8E8M0, x), wanted) << x;
  }
  EXPECT_TRUE(std::isnan(RoundTo(DType::kF8E8M0, kInf)));
  EXPECT_TRUE(std::isnan(RoundTo(DType::kF8E8M0, std::nan(""))));
}

TEST(NarrowIntegers, HoldTheirRangeAndNoMore) {
  for (auto [type, low, high] : {std::tuple{DType::kI4, -8, 7},
                                 {DType::kU4, 0, 15},
                                 {DType::kI2, -2, 1},
                                 {DType::kU2, 0, 3}}) {
    EXPECT_EQ(RoundTo(type, -100), low) << DTypeName(type);
    EXPECT_EQ(RoundTo(type, 100), high) << DTypeName(type);
    HostTensor t(type, {1});
    for (int value = low; value <= high; ++value) {
      t.SetInt(0, value);
      EXPECT_EQ(t.GetInt(0), value) << DTypeName(type);
      EXPECT_EQ(t.GetDouble(0), value) << DTypeName(type);
    }
    t.SetInt(0, high + 1);
    EXPECT_EQ(t.GetInt(0), low) << DTypeName(type);
    // Bits of a byte that do not count.
    t.SetInt(0, 1);
    t.data<uint8_t>()[0] = static_cast<uint8_t>(t.data<uint8_t>()[0] | 0xf0);
    EXPECT_EQ(t.GetInt(0), 1) << DTypeName(type);
  }
}

TEST(PackedTensors, HoldTheLowBitsFirst) {
  auto t = HostTensor::FromPacked(DType::kI4, {3}, std::string_view("\x2f\x08", 2));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->GetInt(0), -1);
  EXPECT_EQ(t->GetInt(1), 2);
  EXPECT_EQ(t->GetInt(2), -8);
  EXPECT_EQ(t->Packed(), std::string("\x2f\x08", 2));
  t = HostTensor::FromPacked(DType::kU2, {5}, std::string_view("\xe4\x02", 2));
  ASSERT_TRUE(t.ok()) << t.status();
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(t->GetInt(i), i < 4 ? i : 2);
  // Four elements of 6 bits are 3 bytes.
  t = HostTensor::FromPacked(DType::kF6E2M3, {4}, std::string_view("\x1f\xf0\x08", 3));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->GetDouble(0), 7.5);
  EXPECT_EQ(t->GetDouble(1), 0);
  EXPECT_EQ(t->GetDouble(2), DoubleFromBits(DType::kF6E2M3, 0x0f));
  EXPECT_EQ(t->GetDouble(3), 0.25);
}

TEST(PackedTensors, ComeBackWhateverTheirLength) {
  for (DType type : {DType::kI4, DType::kU4, DType::kI2, DType::kU2, DType::kF4E2M1, DType::kF6E2M3,
                     DType::kF6E3M2, DType::kF8E5M2, DType::kI16}) {
    for (int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 63}) {
      HostTensor t(type, {n});
      for (int64_t i = 0; i < n; ++i) t.SetDouble(i, static_cast<double>(i % 3) - 1);
      const std::string packed = t.Packed();
      EXPECT_EQ(static_cast<int64_t>(packed.size()), HostTensor::PackedBytes(type, n));
      EXPECT_EQ(HostTensor::PackedBytes(type, n), (n * DTypeBits(type) + 7) / 8);
      auto back = HostTensor::FromPacked(type, {n}, packed);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, t) << DTypeName(type) << " " << n;
      EXPECT_FALSE(HostTensor::FromPacked(type, {n}, packed + " ").ok());
    }
  }
}

}  // namespace
}  // namespace fusion
