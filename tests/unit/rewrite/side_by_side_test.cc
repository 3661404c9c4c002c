#include "core/rewrite/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/plan_cases.h"
#include "tests/support/plan_interpreter.h"

namespace fusion {
namespace {

using testing::HasSubstr;

struct Blocks {
  int64_t rows = 40;
  std::vector<int64_t> lengths = {70, 33};
  std::vector<bool> masked = {};  // by block
  bool sums = false;              // of a product for each block
  bool returns_first_scores = false;
  bool own_queries = false;  // for each block
  int64_t width = 8;
};

// Attention of 2 heads over blocks of keys and values that lie apart.
std::string Attention(const Blocks& of) {
  std::string text = "graph \"g\" {\n";
  int next = 0;
  const auto line = [&](const std::string& rest) {
    StrAppend(&text, StrCat("  %", next, " = ", rest, "\n"));
    return next++;
  };
  const auto given = [&](const std::string& dims) {
    return line(StrCat("input \"i", next, "\" : f32[", dims, "]"));
  };
  const std::string head = StrCat("2,", of.rows, ",");
  std::vector<int> queries = {given(StrCat(head, of.width))};
  if (of.own_queries) queries.push_back(given(StrCat(head, of.width)));
  std::vector<int> keys;
  std::vector<int> values;
  std::vector<int> masks;
  for (size_t i = 0; i < of.lengths.size(); ++i) {
    keys.push_back(given(StrCat("2,", of.width, ",", of.lengths[i])));
    values.push_back(given(StrCat("2,", of.lengths[i], ",", of.width)));
    const bool masked = i < of.masked.size() && of.masked[i];
    masks.push_back(masked ? given(StrCat("1,", of.rows, ",", of.lengths[i])) : -1);
  }
  const int scale = line("const \"s\" : f32[] {0.25}");
  const auto node = [&](const std::string& op, const std::string& dims) {
    return line(StrCat(op, " : f32[", dims, "]  \"\" @ \"\""));
  };
  std::string listed;
  int64_t all = 0;
  int first = -1;
  for (size_t i = 0; i < of.lengths.size(); ++i) {
    const std::string dims = StrCat(head, of.lengths[i]);
    int s = node(StrCat("MatMul(%", queries[i % queries.size()], ", %", keys[i], ")"), dims);
    s = node(StrCat("Mul(%", s, ", %", scale, ")"), dims);
    if (masks[i] >= 0) s = node(StrCat("Add(%", s, ", %", masks[i], ")"), dims);
    if (i == 0) first = s;
    StrAppend(&listed, StrCat(i > 0 ? ", %" : "%", s));
    all += of.lengths[i];
  }
  const std::string row = StrCat(head, all);
  int p = node(StrCat("Concat(", listed, ") {axis=2}"), row);
  p = node(StrCat("Softmax(%", p, ") {axis=2}"), row);
  const std::string out = StrCat(head, of.width);
  int y = -1;
  if (of.sums) {
    int64_t begin = 0;
    for (size_t i = 0; i < of.lengths.size(); ++i) {
      const int64_t end = begin + of.lengths[i];
      const int part =
          node(StrCat("Slice(%", p, ") {axes=[2], ends=[", end, "], starts=[", begin, "]}"),
               StrCat(head, of.lengths[i]));
      const int product = node(StrCat("MatMul(%", part, ", %", values[i], ")"), out);
      y = y < 0 ? product : node(StrCat("Add(%", y, ", %", product, ")"), out);
      begin = end;
    }
  } else {
    std::string pieces;
    for (size_t i = 0; i < values.size(); ++i) {
      StrAppend(&pieces, StrCat(i > 0 ? ", %" : "%", values[i]));
    }
    const int v = node(StrCat("Concat(", pieces, ") {axis=1}"), StrCat("2,", all, ",", of.width));
    y = node(StrCat("MatMul(%", p, ", %", v, ")"), out);
  }
  if (of.returns_first_scores) StrAppend(&text, StrCat("  output %", first, "\n"));
  return StrCat(text, "  output %", y, "\n}\n");
}

Program ProgramOf(const std::string& text) {
  auto program = BuildProgram(GraphOf(text));
  FUSION_CHECK(program.ok(), Message(program.status()));
  return *std::move(program);
}

int ProductsOf(const Program& program) {
  int products = 0;
  for (const LoopOp& op : program.ops) products += op.label == "MatMul" && op.body.reduce ? 1 : 0;
  return products;
}

// How many products are left, of a program that is sound.
int ProductsAfter(const Blocks& of, bool reorder = true) {
  Program program = ProgramOf(Attention(of));
  UniteSideBySide(reorder, &program);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program) << "\n" << ToString(program);
  auto again = ParseProgram(ToString(program));
  EXPECT_TRUE(again.ok()) << again.status();
  if (again.ok()) {
    EXPECT_EQ(ToString(*again), ToString(program));
  }
  return ProductsOf(program);
}

TEST(SideBySide, BlocksOfScoresBecomeOneProduct) {
  EXPECT_EQ(ProductsOf(ProgramOf(Attention({}))), 3);
  EXPECT_EQ(ProductsAfter({}), 2);
  EXPECT_EQ(ProductsAfter({.lengths = {7, 1, 19, 64}}), 2);
  EXPECT_EQ(ProductsAfter({.masked = {false, true}}), 2);
  EXPECT_EQ(ProductsAfter({.masked = {true, true}}), 2);
}

TEST(SideBySide, ASumOfProductsOfPartsBecomesOneProduct) {
  EXPECT_EQ(ProductsAfter({.sums = true}), 2);
  EXPECT_EQ(ProductsAfter({.lengths = {7, 1, 19}, .masked = {true}, .sums = true}), 2);
}

TEST(SideBySide, SumsKeepTheirOrderWhereBitsCount) {
  EXPECT_EQ(ProductsAfter({.sums = true}, /*reorder=*/false), 3) << "scores alone are one";
}

TEST(SideBySide, WhatPiecesDoAlikeIsDoneOnce) {
  Program program = ProgramOf(Attention({}));
  ASSERT_TRUE(UniteSideBySide(true, &program));
  EXPECT_THAT(ToString(program), testing::Not(HasSubstr("select(within(d2, 0, 70), mul(")));
}

TEST(SideBySide, PiecesThatOthersNeedStay) {
  EXPECT_EQ(ProductsAfter({.returns_first_scores = true}), 3);
}

TEST(SideBySide, ProductsWithoutACommonOperandStay) {
  EXPECT_EQ(ProductsAfter({.own_queries = true}), 3);
}

TEST(SideBySide, FewRowsAreNotWorthCopies) { EXPECT_EQ(ProductsAfter({.rows = 1}), 3); }

TEST(SideBySide, OneReductionAloneTakesThePiecesAsTheyAre) {
  Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f32[40,24]
  %1 = weight "a" : f32[24,16]
  %2 = weight "b" : f32[24,8]
  %3 = weight "c" : f32[24,9]
  %4 = MatMul(%0, %1) : f32[40,16]  "" @ ""
  %5 = MatMul(%0, %2) : f32[40,8]  "" @ ""
  %6 = Concat(%4, %5) {axis=1} : f32[40,24]  "" @ ""
  %7 = MatMul(%6, %3) : f32[40,9]  "" @ ""
  output %7
}
)");
  EXPECT_FALSE(UniteSideBySide(true, &program));
}

// ---- plans ----

absl::StatusOr<PlannedModel> PlanOf(const Graph& graph, Numerics numerics, int threads = 1) {
  return MakePlan(graph, DeviceNamed("amd-zen4", threads), {.numerics = numerics});
}

// Also with scores that are infinite or NaN in some rows, in one block or both.
void ExpectEqualsEvaluator(const std::string& text, Numerics numerics) {
  const Graph graph = GraphOf(text);
  auto model = PlanOf(graph, numerics);
  ASSERT_TRUE(model.ok()) << model.status();
  PlanValues values = RandomPlanValues(*model, 3);
  const double inf = std::numeric_limits<double>::infinity();
  for (HostTensor& input : values.inputs) {
    if (input.dims()[0] != 1) continue;  // a mask: a whole row of it, and single elements
    const int64_t length = input.dims()[2];
    for (int64_t i = 0; i < length; ++i) input.SetDouble(i, -inf);
    for (int64_t r = 2; r < 20; ++r) input.SetDouble(r * length + r % length, -inf);
    input.SetDouble(25 * length, std::numeric_limits<double>::quiet_NaN());
  }
  auto got = InterpretPlan(*model, values.inputs, values.weights);
  auto wanted = EvaluatePlanned(graph, *model, values);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  for (size_t o = 0; o < wanted->size(); ++o) {
    for (int64_t e = 0; e < (*wanted)[o].elements(); ++e) {
      const double w = (*wanted)[o].GetDouble(e);
      const double g = (*got)[o].GetDouble(e);
      ASSERT_EQ(std::isnan(g), std::isnan(w)) << e;
      if (!std::isnan(w)) {
        ASSERT_NEAR(g, w, 2e-5 + 2e-4 * std::abs(w)) << e;
      }
    }
  }
}

TEST(SideBySide, PlansEqualTheEvaluator) {
  for (const Numerics numerics : {Numerics::kFp32Accumulate, Numerics::kBitwise}) {
    for (const bool sums : {false, true}) {
      SCOPED_TRACE(StrCat(sums ? "sums" : "one product", static_cast<int>(numerics)));
      ExpectEqualsEvaluator(Attention({.sums = sums}), numerics);
      ExpectEqualsEvaluator(Attention({.masked = {true, true}, .sums = sums}), numerics);
      ExpectEqualsEvaluator(Attention({.masked = {false, true}, .sums = sums}), numerics);
      ExpectEqualsEvaluator(
          Attention({.lengths = {5, 1, 70}, .masked = {true, false, true}, .sums = sums}),
          numerics);
    }
  }
}

// Long enough that rows of scores do not fit on chip.
TEST(SideBySide, ScoresNeedNoMemory) {
  for (const bool sums : {false, true}) {
    for (const auto& masked : {std::vector<bool>{}, {true, true}}) {
      const Blocks blocks{
          .rows = 512, .lengths = {1000, 600, 448}, .masked = masked, .sums = sums, .width = 64};
      auto model = PlanOf(GraphOf(Attention(blocks)), Numerics::kFp32Accumulate);
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_EQ(model->plan.launches.size(), 1U) << testing::PrintToString(Labels(*model));
      EXPECT_EQ(model->plan.arena_bytes, 0);
      ASSERT_EQ(model->kernels.size(), 1U);
      const std::string schedule = ToString(model->kernels[0].schedule);
      EXPECT_THAT(schedule, HasSubstr(" from 1000 to 1600 {")) << "each block is read in place";
    }
  }
}

TEST(SideBySide, OpByOpStaysOpByOp) {
  auto model = MakePlan(GraphOf(Attention({})), Cpu(), {.fusion = FusionMode::kOpByOp});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(ProductsOf(model->program), 3);
}

}  // namespace
}  // namespace fusion
