#include "core/tensor/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fusion {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

HostTensor Floats(const std::vector<double>& values) {
  HostTensor tensor(DType::kF32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.SetDouble(static_cast<int64_t>(i), values[i]);
  return tensor;
}

HostTensor Integers(DType dtype, const std::vector<int64_t>& values) {
  HostTensor tensor(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.SetInt(static_cast<int64_t>(i), values[i]);
  return tensor;
}

TEST(Compare, IntegersThatDifferShowByHowMuch) {
  const Difference d =
      Compare(Integers(DType::kI32, {5, -7, 9}), Integers(DType::kI32, {5, 3, 10}));
  EXPECT_EQ(d.max_abs, 10);
  EXPECT_EQ(d.max_rel, 1);
  EXPECT_EQ(d.outside, 2);
  EXPECT_EQ(d.first_outside, 1);
  EXPECT_FALSE(d.ok());
}

TEST(Compare, SoDoBoolsAndTheWidestIntegers) {
  EXPECT_EQ(Compare(Integers(DType::kBool, {1, 0}), Integers(DType::kBool, {1, 1})).max_abs, 1);
  const int64_t least = std::numeric_limits<int64_t>::min();
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Compare(Integers(DType::kI64, {least}), Integers(DType::kI64, {most})).max_abs, 0x1p64);
  // As bits: 2^64 - 1 and 1.
  EXPECT_EQ(Compare(Integers(DType::kU64, {-1}), Integers(DType::kU64, {1})).max_abs, 0x1p64);
  // Doubles do not tell these apart.
  const Difference near = Compare(Integers(DType::kI64, {most}), Integers(DType::kI64, {most - 1}));
  EXPECT_EQ(near.max_abs, 1);
  EXPECT_EQ(near.outside, 1);
}

TEST(Compare, WhatIsNoNumberDiffersInfinitely) {
  for (const auto& [got, wanted] : std::vector<std::pair<double, double>>{{kInfinity, 1},
                                                                          {1, -kInfinity},
                                                                          {kNaN, 1},
                                                                          {1, kNaN},
                                                                          {kInfinity, -kInfinity},
                                                                          {kNaN, kInfinity}}) {
    const Difference d = Compare(Floats({0, got}), Floats({0, wanted}), {.atol = 1, .rtol = 1});
    EXPECT_EQ(d.max_abs, kInfinity) << got << " " << wanted;
    EXPECT_EQ(d.max_rel, kInfinity);
    EXPECT_EQ(d.outside, 1);
  }
  EXPECT_TRUE(Compare(Floats({kNaN, kInfinity}), Floats({kNaN, kInfinity})).ok());
  EXPECT_EQ(Compare(Floats({kNaN, kInfinity}), Floats({kNaN, kInfinity})).max_abs, 0);
}

TEST(Compare, FloatsWithinTheToleranceAreNotOutside) {
  const Difference d = Compare(Floats({1, 2}), Floats({1, 2.5}), {.atol = 0, .rtol = 0.2});
  EXPECT_EQ(d.max_abs, 0.5);
  EXPECT_EQ(d.max_rel, 0.2);
  EXPECT_TRUE(d.ok());
  EXPECT_FALSE(Compare(Floats({1, 2}), Floats({1, 2.5}), {.atol = 0, .rtol = 0.1}).ok());
}

}  // namespace
}  // namespace fusion
