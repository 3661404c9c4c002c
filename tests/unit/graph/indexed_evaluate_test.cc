// The evaluator walks reductions at places that are read without the dims of the place; the results
// are those of walking all of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/graph/evaluate/evaluate_loop.h"
#include "core/op/body/indexed_reduction.h"

namespace fusion {
namespace {

constexpr int64_t kPlaces = 6;
constexpr int64_t kRows = 3;
constexpr int64_t kUpdates = 40;

// Axes i, r, j; input 0 are places [j] or [j, r], input 1 updates [j, r].
LoopBody Scatter(std::string_view monoid, DType type, bool place_of_each) {
  const Monoid reduce = *Monoid::Named(monoid, type);
  LoopBody body;
  body.axes = {{"i", Dim(kPlaces)}, {"r", Dim(kRows)}, {"j", Dim(kUpdates)}};
  IndexMap places = {IndexExpr::Axis(2)};
  if (place_of_each) places.push_back(IndexExpr::Axis(1));
  body.reads = {Read{.index = places, .guards = {}},
                Read{.index = {IndexExpr::Axis(2), IndexExpr::Axis(1)}, .guards = {}}};
  body.write = {IndexExpr::Axis(0), IndexExpr::Axis(1)};
  body.value = Expr::Select(Expr::Binary(ScalarOp::kEq, Expr::Input(0, DType::kI64), Expr::Axis(0)),
                            Expr::Input(1, type), reduce.identity()[0]);
  body.reduce = reduce;
  return body;
}

EvaluatedValue Places(bool of_each) {
  std::mt19937 random(3);
  EvaluatedValue out{.dtype = DType::kI64,
                     .box = Box::Whole(of_each ? Dims{kUpdates, kRows} : Dims{kUpdates}),
                     .reals = {},
                     .integers = {}};
  // Some are none.
  for (int64_t i = 0; i < NumElements(out.box.Extents()); ++i) {
    out.integers.push_back(static_cast<int64_t>(random() % (kPlaces + 4)) - 2);
  }
  return out;
}

EvaluatedValue Updates(DType type) {
  std::mt19937 random(5);
  EvaluatedValue out{
      .dtype = type, .box = Box::Whole({kUpdates, kRows}), .reals = {}, .integers = {}};
  for (int64_t i = 0; i < kUpdates * kRows; ++i) {
    const auto value = static_cast<double>(random() % 1000) / 250 - 2;
    if (!IsFloat(type)) {
      out.integers.push_back(static_cast<int64_t>(value));
    } else {
      out.reals.push_back(i % 17 == 3 ? std::nan("") : i % 19 == 5 ? INFINITY : value);
    }
  }
  return out;
}

// Element by element, as the body says.
double Expected(const LoopBody& body, const EvaluatedValue& places, const EvaluatedValue& updates,
                bool place_of_each, int64_t i, int64_t r) {
  const bool real = IsFloat(body.dtype());
  const Expr& identity = body.reduce->identity()[0];
  double state = real ? identity.value() : static_cast<double>(identity.integer());
  for (int64_t j = 0; j < kUpdates; ++j) {
    const auto at = static_cast<size_t>(place_of_each ? j * kRows + r : j);
    if (places.integers[at] != i) continue;
    const auto u = static_cast<size_t>(j * kRows + r);
    const double update = real ? updates.reals[u] : static_cast<double>(updates.integers[u]);
    const ScalarOp op = body.reduce->merge()[0].op();
    state = EvaluateReal(op, state, update);
  }
  return state;
}

TEST(EvaluateIndexed, EqualsWalkingAllPlaces) {
  for (std::string_view monoid : {"sum", "prod", "max", "min"}) {
    for (DType type : {DType::kF32, DType::kI64}) {
      for (bool of_each : {false, true}) {
        const LoopBody body = Scatter(monoid, type, of_each);
        ASSERT_TRUE(IndexedReductionOf(body).has_value());
        const EvaluatedValue places = Places(of_each);
        const EvaluatedValue updates = Updates(type);
        // Whole, and a part.
        for (const Box& box : {Box::Whole({kPlaces, kRows}), Box{{2, 1}, {5, 3}}}) {
          EvaluatedValue out{.dtype = type, .box = box, .reals = {}, .integers = {}};
          ASSERT_TRUE(EvaluateLoop(body, {&places, &updates}, 2, &out).ok());
          size_t at = 0;
          for (int64_t i = box.begin[0]; i < box.end[0]; ++i) {
            for (int64_t r = box.begin[1]; r < box.end[1]; ++r, ++at) {
              const double got =
                  IsFloat(type) ? out.reals[at] : static_cast<double>(out.integers[at]);
              EXPECT_THAT(got, testing::NanSensitiveDoubleEq(
                                   Expected(body, places, updates, of_each, i, r)))
                  << monoid << " " << DTypeName(type) << " [" << i << ", " << r << "]";
            }
          }
        }
      }
    }
  }
}

// Half a million places, as many updates.
TEST(EvaluateIndexed, CostsAStepForEachUpdate) {
  constexpr int64_t kMany = int64_t{1} << 19;
  LoopBody body = Scatter("sum", DType::kF32, false);
  body.axes = {{"i", Dim(kMany)}, {"r", Dim(1)}, {"j", Dim(kMany)}};
  const Box all = Box::Whole({kMany, 1});
  EXPECT_LE(PointsOf(body, all), 4.0 * kMany);
  EvaluatedValue places{
      .dtype = DType::kI64, .box = Box::Whole({kMany}), .reals = {}, .integers = {}};
  EvaluatedValue updates{
      .dtype = DType::kF32, .box = Box::Whole({kMany, 1}), .reals = {}, .integers = {}};
  for (int64_t j = 0; j < kMany; ++j) {
    places.integers.push_back(kMany - 1 - j);
    updates.reals.push_back(static_cast<double>(j));
  }
  EvaluatedValue out{.dtype = DType::kF32, .box = all, .reals = {}, .integers = {}};
  ASSERT_TRUE(EvaluateLoop(body, {&places, &updates}, 1, &out).ok());
  EXPECT_EQ(out.reals.front(), static_cast<double>(kMany - 1));
  EXPECT_EQ(out.reals.back(), 0);
}

}  // namespace
}  // namespace fusion
