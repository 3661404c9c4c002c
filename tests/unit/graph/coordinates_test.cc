#include "core/graph/program/coordinates.h"

#include <gtest/gtest.h>

#include "core/base/text/text.h"
#include "core/graph/build/text.h"
#include "core/graph/program/program.h"

namespace fusion {
namespace {

template <typename Value>
HostTensor Filled(DType type, const Dims& dims, const Value& value) {
  HostTensor out(type, dims);
  for (int64_t e = 0; e < out.elements(); ++e) {
    int64_t j = dims.empty() ? 0 : e % dims.back();
    int64_t i = dims.size() < 2 ? 0 : e / dims.back() % dims[dims.size() - 2];
    if (IsFloat(type)) {
      out.SetDouble(e, static_cast<double>(value(i, j)));
    } else {
      out.SetInt(e, static_cast<int64_t>(value(i, j)));
    }
  }
  return out;
}

// The form, evaluated everywhere, is the constant.
void ExpectForm(const HostTensor& constant) {
  Expr form = CoordinateForm(constant);
  ASSERT_FALSE(form.empty());
  EXPECT_EQ(form.type(), constant.dtype());
  const Dims& dims = constant.dims();
  for (int64_t e = 0; e < constant.elements(); ++e) {
    Dims at(dims.size());
    int64_t left = e;
    for (size_t d = dims.size(); d-- > 0;) {
      at[d] = left % dims[d];
      left /= dims[d];
    }
    Expr here = form.MapLeaves([&](const Expr& leaf) {
      return leaf.op() == ScalarOp::kAxis
                 ? Expr::ConstInt(DType::kI64, at[static_cast<size_t>(leaf.index())])
                 : leaf;
    });
    CompiledExpr compiled(here);
    auto value = compiled.Evaluate(1, {}, {});
    if (IsFloat(constant.dtype())) {
      ASSERT_EQ(value.reals[0], constant.GetDouble(e)) << e << " " << form.ToString();
    } else {
      ASSERT_EQ(value.integers[0], constant.GetInt(e)) << e << " " << form.ToString();
    }
  }
}

TEST(CoordinateForm, OfPositions) {
  ExpectForm(Filled(DType::kI64, {17}, [](auto, auto j) { return j; }));
  ExpectForm(Filled(DType::kI32, {3, 7}, [](auto i, auto j) { return 5 - 2 * i + 3 * j; }));
  ExpectForm(Filled(DType::kI64, {4, 1}, [](auto, auto) { return 9; }));
}

TEST(CoordinateForm, OfMasks) {
  for (int64_t c : {-3, 0, 2}) {
    ExpectForm(Filled(DType::kBool, {6, 9}, [&](auto i, auto j) { return j - i <= c; }));
    ExpectForm(Filled(DType::kBool, {1, 1, 9, 6}, [&](auto i, auto j) { return j - i >= c; }));
  }
  ExpectForm(Filled(DType::kBool, {9, 9}, [](auto i, auto j) { return j <= i && i < j + 4; }));
  ExpectForm(Filled(DType::kBool, {9}, [](auto, auto j) { return j < 5; }));
  ExpectForm(Filled(DType::kF32, {8, 9}, [](auto i, auto j) { return j <= i ? 0.0 : -1e4; }));
  ExpectForm(Filled(DType::kF32, {8, 9}, [](auto i, auto j) {
    return j <= i ? 0.0 : -std::numeric_limits<double>::infinity();
  }));
  ExpectForm(Filled(DType::kI32, {2, 8, 9}, [](auto i, auto j) { return j <= i ? 1 : 0; }));
  // All but a corner: what is masked is what bounds say.
  ExpectForm(Filled(DType::kBool, {9, 9}, [](auto i, auto j) { return i > 2 || j > 2; }));
}

TEST(CoordinateForm, OfNothingElse) {
  EXPECT_TRUE(CoordinateForm(HostTensor(DType::kI64, {0, 3})).empty());
  EXPECT_TRUE(CoordinateForm(Filled(DType::kI64, {9}, [](auto, auto j) { return j * j; })).empty());
  EXPECT_TRUE(CoordinateForm(Filled(DType::kBool, {9, 9}, [](auto i, auto j) {
                return (i + j) % 2;
              })).empty());
  EXPECT_TRUE(
      CoordinateForm(Filled(DType::kI64, {3}, [](auto, auto j) { return j << 40; })).empty());
  // Weights are arguments, whatever they hold.
  EXPECT_TRUE(CoordinateForm(Filled(DType::kF32, {9}, [](auto, auto) { return 1.0; })).empty());
  EXPECT_TRUE(
      CoordinateForm(Filled(DType::kF32, {9, 9}, [](auto i, auto j) { return i * j; })).empty());
}

// Of numbers whose differences do not fit their type, and of steps that would grow out of it.
TEST(CoordinateForm, OfTheLargestNumbers) {
  for (int64_t first : {int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    HostTensor pair(DType::kI64, {2});
    pair.SetInt(0, first);
    pair.SetInt(1, std::numeric_limits<int64_t>::max());
    ExpectForm(pair);  // two values
    HostTensor three(DType::kI64, {3});
    for (int64_t e : {0, 1}) three.SetInt(e, pair.GetInt(e));
    three.SetInt(2, 5);
    EXPECT_TRUE(CoordinateForm(three).empty());
  }
}

// One wrong element and it is a constant like any other.
TEST(CoordinateForm, LooksAtEveryElement) {
  HostTensor mask = Filled(DType::kBool, {9, 9}, [](auto i, auto j) { return j <= i; });
  for (int64_t e : {0, 40, 44, 80}) {
    HostTensor other = mask;
    other.SetInt(e, 1 - other.GetInt(e));
    // The corners may leave another mask that bounds say.
    if (!CoordinateForm(other).empty()) ExpectForm(other);
  }
  HostTensor other = mask;
  other.SetInt(30, 1 - other.GetInt(30));
  EXPECT_TRUE(CoordinateForm(other).empty());
}

// A mask that is computed from positions, and one that the model holds, are conditions of whoever
// reads them; nothing is left to compute before.
TEST(CoordinateForm, GoesIntoWhoReadsIt) {
  for (const char* mask : {R"(
  %1 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {3}, start=tensor i64[] {0}} : i64[3]  "" @ ""
  %2 = Unsqueeze(%1) {axes=[1]} : i64[3,1]  "" @ ""
  %3 = LessOrEqual(%1, %2) : bool[3,3]  "" @ "")",
                           R"(
  %3 = const "" : bool[3,3] {1, 0, 0, 1, 1, 0, 1, 1, 1})"}) {
    auto graph = ParseGraph(StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[3,3]", mask, R"(
  %4 = const "" : f32[] {-10000}
  %5 = Where(%3, %0, %4) : f32[3,3]  "" @ ""
  output %5
}
)"));
    ASSERT_TRUE(graph.ok()) << graph.status();
    auto program = BuildProgram(*graph);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->ops.size(), 1u) << ToString(*program);
    EXPECT_EQ(program->ops[0].inputs.size(), 1u) << ToString(*program);
    auto again = ParseProgram(ToString(*program));
    ASSERT_TRUE(again.ok()) << again.status() << ToString(*program);
    EXPECT_EQ(ToString(*again), ToString(*program));
  }
}

}  // namespace
}  // namespace fusion
