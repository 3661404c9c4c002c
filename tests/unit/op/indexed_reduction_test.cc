#include "core/op/body/indexed_reduction.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

const Expr kIndex = Expr::Input(0, DType::kI64);
const Expr kUpdate = Expr::Input(1, DType::kF32);
const Expr kZero = Expr::Const(DType::kF32, 0);

Expr Equal(const Expr& a, const Expr& b) { return Expr::Binary(ScalarOp::kEq, a, b); }
Expr Number(int64_t value) { return Expr::ConstInt(DType::kI64, value); }

// y[i, r] = sum over j of select(index[j] == i, update[j, r], 0); axes i, r, j.
LoopBody ScatterOf(const Expr& value, const Monoid& reduce) {
  LoopBody body;
  body.axes = {{"i", Dim(5)}, {"r", Dim(3)}, {"j", Dim(7)}};
  body.reads = {Read{.index = {IndexExpr::Axis(2)}, .guards = {}},
                Read{.index = {IndexExpr::Axis(2), IndexExpr::Axis(1)}, .guards = {}}};
  body.write = {IndexExpr::Axis(0), IndexExpr::Axis(1)};
  body.value = value;
  body.reduce = reduce;
  return body;
}

LoopBody Scatter(const Expr& hit) {
  return ScatterOf(Expr::Select(hit, kUpdate, kZero), Monoid::Sum(DType::kF32));
}

TEST(IndexedReduction, IsWhatGivesNothingElsewhere) {
  const Expr hit = Equal(kIndex, Expr::Axis(0));
  auto found = IndexedReductionOf(Scatter(hit));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->at, IndexExpr::Axis(0));
  EXPECT_EQ(found->place, kIndex);
  EXPECT_EQ(found->value, kUpdate);
  // Whichever side says the place; whatever is made of the index.
  EXPECT_TRUE(IndexedReductionOf(Scatter(Equal(Expr::Axis(0), kIndex))).has_value());
  EXPECT_TRUE(IndexedReductionOf(Scatter(Equal(kIndex + Number(2), Expr::Axis(0)))).has_value());

  const Expr one = Expr::Const(DType::kF32, 1);
  const auto monoid = [](std::string_view name) { return *Monoid::Named(name, DType::kF32); };
  EXPECT_TRUE(
      IndexedReductionOf(ScatterOf(Expr::Select(hit, kUpdate, one), monoid("prod"))).has_value());
  EXPECT_FALSE(
      IndexedReductionOf(ScatterOf(Expr::Select(hit, kUpdate, one), monoid("sum"))).has_value());
  EXPECT_FALSE(
      IndexedReductionOf(ScatterOf(Expr::Select(hit, kUpdate, kZero), monoid("max"))).has_value());
  EXPECT_FALSE(
      IndexedReductionOf(ScatterOf(Expr::Select(hit, kZero, kUpdate), monoid("sum"))).has_value());
}

TEST(IndexedReduction, ThePlaceIsNoneOfWhatItIsAlong) {
  // An index that is another one for each i.
  LoopBody body = Scatter(Equal(kIndex, Expr::Axis(0)));
  body.reads[0].index = {IndexExpr::Axis(2) + IndexExpr::Axis(0)};
  EXPECT_FALSE(IndexedReductionOf(body).has_value());
  body = Scatter(Equal(kIndex + Expr::Axis(0), Expr::Axis(0)));
  EXPECT_FALSE(IndexedReductionOf(body).has_value());
  // What is summed up is no place of the result.
  body = Scatter(Equal(kIndex, Expr::Axis(2)));
  EXPECT_FALSE(IndexedReductionOf(body).has_value());
  // Other comparisons hold at many places.
  body = Scatter(Expr::Binary(ScalarOp::kLe, kIndex, Expr::Axis(0)));
  EXPECT_FALSE(IndexedReductionOf(body).has_value());
}

TEST(IndexedReduction, APlaceMayHaveSeveralDigits) {
  const Expr both = Expr::Axis(0) * Number(3) + Expr::Axis(1);
  LoopBody body = Scatter(Equal(kIndex, both));
  body.reads[1].index = {IndexExpr::Axis(2), IndexExpr(0)};
  auto found = IndexedReductionOf(body);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->at, IndexExpr::Axis(0, 3) + IndexExpr::Axis(1));
  // With gaps, or twice the same number.
  EXPECT_FALSE(IndexedReductionOf(Scatter(Equal(kIndex, Expr::Axis(0) * Number(4) + Expr::Axis(1))))
                   .has_value());
  EXPECT_FALSE(
      IndexedReductionOf(Scatter(Equal(kIndex, Expr::Axis(0) + Expr::Axis(1)))).has_value());
  EXPECT_FALSE(IndexedReductionOf(Scatter(Equal(kIndex, Expr::Axis(0) * Number(2)))).has_value());
}

TEST(IndexedReduction, UpdatesMayFollowTheirPlace) {
  LoopBody body = Scatter(Equal(kIndex, Expr::Axis(0)));
  EXPECT_TRUE(UpdateIsFixed(body, *IndexedReductionOf(body)));
  body.reads[1].index = {IndexExpr::Axis(2) + IndexExpr::Axis(0), IndexExpr::Axis(1)};
  ASSERT_TRUE(IndexedReductionOf(body).has_value());
  EXPECT_FALSE(UpdateIsFixed(body, *IndexedReductionOf(body)));
}

}  // namespace
}  // namespace fusion
