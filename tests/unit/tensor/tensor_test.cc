#include <gtest/gtest.h>

#include <cmath>

#include "core/tensor/host_tensor.h"

namespace fusion {
namespace {

TEST(DType, HalfAndBFloatRoundTripEveryPattern) {
  for (int bits = 0; bits < 65536; ++bits) {
    auto pattern = static_cast<uint16_t>(bits);
    double half = HalfToDouble(pattern);
    double bf = BFloat16ToDouble(pattern);
    if (!std::isnan(half)) {
      EXPECT_EQ(HalfFromDouble(half), pattern);
    }
    if (!std::isnan(bf)) {
      EXPECT_EQ(BFloat16FromDouble(bf), pattern);
    }
  }
}

TEST(DType, RoundToRoundsTiesToEvenAndSaturatesIntegers) {
  EXPECT_EQ(RoundTo(DType::kF16, 2049), 2048);
  EXPECT_EQ(RoundTo(DType::kF16, 2051), 2052);
  EXPECT_EQ(RoundTo(DType::kF16, 65520), HUGE_VAL);
  EXPECT_EQ(RoundTo(DType::kI8, 300), 127);
  EXPECT_EQ(RoundTo(DType::kI8, -1.9), -1);
  EXPECT_EQ(RoundTo(DType::kI32, NAN), 0);
  EXPECT_EQ(RoundTo(DType::kBool, -0.5), 1);
}

TEST(Dim, SumsOfSymbolsPrintAndParse) {
  Dim d = Dim::Symbol(1, 2) + Dim::Symbol(0) + Dim(16);
  EXPECT_EQ(d.ToString(), "s0 + 2*s1 + 16");
  EXPECT_EQ(Dim::Parse(d.ToString()).value(), d);
  EXPECT_EQ(d.Evaluate({5, 7}).value(), 35);
  EXPECT_FALSE(d.Evaluate({5}).ok());
  EXPECT_EQ(d - Dim::Symbol(1, 2), Dim::Symbol(0) + Dim(16));
  for (const char* bad : {"", "s", "+", "3*", "s0 s1", "x"})
    EXPECT_FALSE(Dim::Parse(bad).ok()) << bad;
}

TEST(Shape, ElementCountsAreCheckedForOverflow) {
  EXPECT_EQ(CheckedNumElements({2, 3}, 4).value(), 6);
  EXPECT_EQ(CheckedNumElements({}, 4).value(), 1);
  EXPECT_EQ(CheckedNumElements({0, 5}, 4).value(), 0);
  EXPECT_FALSE(CheckedNumElements({int64_t{1} << 40, int64_t{1} << 40}, 4).ok());
  EXPECT_FALSE(CheckedNumElements({0, int64_t{1} << 62}, 4).ok());
  EXPECT_FALSE(CheckedNumElements({-1}, 4).ok());
  EXPECT_EQ(CheckedNumElements({kMaxTensorBytes / 8, 2}, 4).value(), kMaxTensorBytes / 4);
  EXPECT_EQ(Message(CheckedNumElements({kMaxTensorBytes / 8, 3}, 4).status()),
            "shape [2199023255552,3]: 26388279066624 bytes, expected at most 17592186044416");
}

TEST(HostTensor, MemoryThatLacksIsAnErrorAndNoAbort) {
  EXPECT_EQ(HostTensor::Create(DType::kU8, {kMaxTensorBytes}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(HostTensor::Create(DType::kU8, {kMaxTensorBytes + 1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto small = HostTensor::Create(DType::kI32, {2});
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(*small, HostTensor(DType::kI32, {2}));
}

TEST(HostTensor, BoolsFromBytesAreZeroOrOne) {
  auto t = HostTensor::FromBytes(DType::kBool, {3}, std::string_view("\0\1\x80", 3));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->byte_view(), std::string_view("\0\1\1", 3));
}

TEST(HostTensor, BytesMustMatchTheShape) {
  EXPECT_FALSE(HostTensor::FromBytes(DType::kF32, {2}, "abc").ok());
  auto t = HostTensor::FromBytes(DType::kF32, {1}, std::string_view("\0\0\x80\x3f", 4));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->GetDouble(0), 1.0);
}

TEST(HostTensor, SettersRoundLikeTheType) {
  HostTensor t(DType::kI64, {3});
  t.SetDouble(0, 1e30);
  t.SetDouble(1, -2.7);
  t.SetInt(2, -5);
  EXPECT_EQ(t.GetInt(0), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(t.GetInt(1), -2);
  EXPECT_EQ(t.GetInt(2), -5);
}

}  // namespace
}  // namespace fusion
