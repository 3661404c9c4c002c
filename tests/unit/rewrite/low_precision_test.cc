#include "core/rewrite/low_precision.h"

#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

// The bodies of the products of a graph, and how many roundings there are.
struct Rounded {
  std::vector<std::string> products;
  int casts = 0;
};
Rounded RoundedOf(const char* text, const char* device) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto program = BuildProgram(*graph);
  FUSION_CHECK(program.ok(), Message(program.status()));
  RoundProducts(DeviceNamed(device), &*program);
  // Still a program: it prints as one that parses to the same.
  auto again = ParseProgram(ToString(*program));
  FUSION_CHECK(again.ok(), Message(again.status()));
  EXPECT_EQ(ToString(*again), ToString(*program));
  Rounded out;
  for (LoopId l = 0; l < static_cast<LoopId>(program->ops.size()); ++l) {
    const LoopOp& op = program->op(l);
    EXPECT_EQ(program->value(op.output).producer, l);
    if (op.body.reduce) out.products.push_back(op.body.value.ToString());
    if (op.label == "Cast") ++out.casts;
  }
  return out;
}

constexpr const char* kBoth = "mul(cast.f32(in0), cast.f32(in1))";
constexpr const char* kWeights = "mul(in0, cast.f32(in1))";
constexpr const char* kNone = "mul(in0, in1)";

std::string Product(const char* x, const char* w, const char* y) {
  return StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[", x, "]\n  %1 = weight \"w\" : f32[", w,
                "]\n  %2 = MatMul(%0, %1) : f32[", y, "]  \"\" @ \"\"\n  output %2\n}\n");
}

// Tiles of AMX hold 32 elements of a row: a shorter sum gains nothing by being rounded.
TEST(RoundProducts, AUnitOfTilesWantsSumsAsLongAsOneOfThem) {
  const std::string shorter = Product("64,31", "31,256", "64,256");
  const std::string longer = Product("64,32", "32,256", "64,256");
  EXPECT_EQ(RoundedOf(shorter.c_str(), "generic-avx512-amx").products,
            std::vector{std::string(kNone)});
  EXPECT_EQ(RoundedOf(longer.c_str(), "generic-avx512-amx").products,
            std::vector{std::string(kBoth)});
  EXPECT_EQ(RoundedOf(shorter.c_str(), "generic-avx512-bf16").products,
            std::vector{std::string(kBoth)});
}

// Rows that come from several heads walk the weights in stretches: no window slides along them.
TEST(RoundProducts, SumsOverHeadsAreRounded) {
  constexpr const char* kGraph = R"(graph "g" {
  %0 = input "x" : f32[4,64,40]
  %1 = weight "w" : f32[160,96]
  %2 = Transpose(%0) {perm=[1, 0, 2]} : f32[64,4,40]  "" @ ""
  %3 = Reshape(%2) {shape=[64, 160]} : f32[64,160]  "" @ ""
  %4 = MatMul(%3, %1) : f32[64,96]  "" @ ""
  output %4
}
)";
  EXPECT_EQ(RoundedOf(kGraph, "generic-avx512-bf16").products, std::vector{std::string(kBoth)});
  // Those of a convolution do.
  constexpr const char* kWindows = R"(graph "g" {
  %0 = input "x" : f32[1,64,9,9]
  %1 = weight "w" : f32[64,64,3,3]
  %2 = Conv(%0, %1) : f32[1,64,7,7]  "" @ ""
  output %2
}
)";
  EXPECT_EQ(RoundedOf(kWindows, "generic-avx512-bf16").products, std::vector{std::string(kNone)});
}

TEST(RoundProducts, ManyRowsRoundBothWhereThereIsAUnit) {
  const std::string graph = Product("8,64", "64,64", "8,64");
  EXPECT_EQ(RoundedOf(graph.c_str(), "generic-avx512-bf16").products,
            std::vector{std::string(kBoth)});
  EXPECT_EQ(RoundedOf(graph.c_str(), "generic-avx512-bf16").casts, 2);
  EXPECT_EQ(RoundedOf(graph.c_str(), "generic-avx512").products, std::vector{std::string(kNone)});
  // Other devices' units take operands of their own form.
  EXPECT_EQ(RoundedOf(graph.c_str(), "h100").products, std::vector{std::string(kNone)});
}

TEST(RoundProducts, FewRowsRoundWeightsOnly) {
  const std::string graph = Product("7,64", "64,64", "7,64");
  for (const char* device : {"generic-x86-64-v2", "generic-avx2", "generic-avx512-bf16"}) {
    EXPECT_EQ(RoundedOf(graph.c_str(), device).products, std::vector{std::string(kWeights)});
    EXPECT_EQ(RoundedOf(graph.c_str(), device).casts, 1);
  }
}

TEST(RoundProducts, LeavesSmallWeightsAndProductsOfInputs) {
  const std::string small = Product("64,63", "63,64", "64,64");
  EXPECT_EQ(RoundedOf(small.c_str(), "generic-avx512-bf16").products,
            std::vector{std::string(kNone)});
  constexpr const char* kInputs = R"(graph "g" {
  %0 = input "x" : f32[64,64]
  %1 = input "y" : f32[64,64]
  %2 = MatMul(%0, %1) : f32[64,64]  "" @ ""
  output %2
}
)";
  EXPECT_EQ(RoundedOf(kInputs, "generic-avx512-bf16").products, std::vector{std::string(kNone)});
}

TEST(RoundProducts, RoundsWhatTwoProductsReadOnce) {
  constexpr const char* kGraph = R"(graph "g" {
  %0 = input "x" : f32[16,64]
  %1 = weight "u" : f32[64,64]
  %2 = weight "v" : f32[64,64]
  %3 = MatMul(%0, %1) : f32[16,64]  "" @ ""
  %4 = MatMul(%0, %2) : f32[16,64]  "" @ ""
  output %3
  output %4
}
)";
  const Rounded rounded = RoundedOf(kGraph, "generic-avx512-bf16");
  EXPECT_EQ(rounded.products, (std::vector<std::string>{kBoth, kBoth}));
  EXPECT_EQ(rounded.casts, 3);
}

// However few positions they have: those of one are no product of few rows.
TEST(RoundProducts, LeavesConvolutions) {
  for (const char* size : {"9,9", "1,1"}) {
    const std::string graph =
        StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[1,64,", size,
               "]\n  %1 = weight \"w\" : f32[64,64,1,1]\n  %2 = Conv(%0, %1) : f32[1,64,", size,
               "]  \"\" @ \"\"\n  output %2\n}\n");
    EXPECT_EQ(RoundedOf(graph.c_str(), "generic-avx512-bf16").casts, 0) << size;
  }
}

// Sums of products get 16-bit operands in f32, and are rounded like any others.
TEST(RoundProducts, RoundsWhatWasF16) {
  constexpr const char* kGraph = R"(graph "g" {
  %0 = input "x" : f16[16,64]
  %1 = weight "w" : f16[64,64]
  %2 = MatMul(%0, %1) : f16[16,64]  "" @ ""
  output %2
}
)";
  EXPECT_EQ(RoundedOf(kGraph, "generic-avx512-bf16").products, std::vector{std::string(kBoth)});
}

TEST(RoundProducts, LeavesWhatItIsAskedToLeave) {
  auto graph = ParseGraph(Product("7,64", "64,64", "7,64").c_str());
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string stated = ToString(*program);
  int asked = 0;
  RoundProducts(DeviceNamed("generic-avx2"), &*program, [&](const LoopOp& op) {
    EXPECT_EQ(op.label, "MatMul");
    ++asked;
    return true;
  });
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(ToString(*program), stated);
}

// The program of a graph once its products read weights as they are stored.
std::string Narrowed(std::string_view text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto program = BuildProgram(*graph);
  FUSION_CHECK(program.ok(), Message(program.status()));
  ReadNarrowWeights(DeviceNamed("generic-avx2"), &*program);
  auto again = ParseProgram(ToString(*program));
  FUSION_CHECK(again.ok(), Message(again.status()));
  EXPECT_EQ(ToString(*again), ToString(*program));
  return ToString(*program);
}

bool IsNarrow(const std::string& program) {
  return program.find("sum(") != std::string::npos &&
         program.find("mul(in0, cast.f32(in1))") != std::string::npos;
}

// One row of 80 by %8, a weight of 80 times 64, which `made` makes of what `weights` declare.
std::string OneRow(std::string_view weights, std::string_view made) {
  return StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[1,80]\n", weights, made,
                "  %9 = MatMul(%0, %8) : f32[1,64]  \"\" @ \"\"\n  output %9\n}\n");
}

TEST(ReadNarrowWeights, ReadsSymmetricIntegers) {
  constexpr const char* kGiven = "  %1 = weight \"q\" : i8[80,64]\n  %2 = weight \"s\" : f32[64]\n";
  constexpr const char* kMade =
      "  %8 = DequantizeLinear(%1, %2) {axis=1} : f32[80,64]  \"\" @ \"\"\n";
  EXPECT_TRUE(IsNarrow(Narrowed(OneRow(kGiven, kMade))));
}

// As quantisers write them: with a zero point that is there, and 0.
TEST(ReadNarrowWeights, ReadsIntegersAroundAZeroPointOfZeros) {
  std::string zeros = "0";
  for (int i = 1; i < 64; ++i) zeros += ",0";
  const std::string weights = "  %1 = weight \"q\" : i8[80,64]\n  %2 = weight \"s\" : f32[64]\n";
  const std::string of_columns = StrCat(weights, "  %3 = const \"z\" : i8[64] {", zeros, "}\n");
  constexpr const char* kMade =
      "  %8 = DequantizeLinear(%1, %2, %3) {axis=1} : f32[80,64]  \"\" @ \"\"\n";
  EXPECT_TRUE(IsNarrow(Narrowed(OneRow(of_columns, kMade))));
  const std::string of_all =
      "  %1 = weight \"q\" : i8[80,64]\n  %2 = const \"s\" : f32[] {0x1p-4}\n"
      "  %3 = const \"z\" : i8[] {0}\n";
  constexpr const char* kOfAll = "  %8 = DequantizeLinear(%1, %2, %3) : f32[80,64]  \"\" @ \"\"\n";
  EXPECT_TRUE(IsNarrow(Narrowed(OneRow(of_all, kOfAll))));
  const std::string around_one =
      "  %1 = weight \"q\" : i8[80,64]\n  %2 = const \"s\" : f32[] {0x1p-4}\n"
      "  %3 = const \"z\" : i8[] {1}\n";
  EXPECT_FALSE(IsNarrow(Narrowed(OneRow(around_one, kOfAll))));
}

// Which one is the weight and which one its scale is told by which of them is stored narrow.
TEST(ReadNarrowWeights, LeavesTwoFactorsThatLieAlike) {
  constexpr const char* kGiven =
      "  %1 = weight \"q\" : i8[80,64]\n  %2 = weight \"s\" : f32[80,64]\n";
  constexpr const char* kMade =
      "  %3 = Cast(%1) {to=\"f32\"} : f32[80,64]  \"\" @ \"\"\n"
      "  %8 = Mul(%3, %2) : f32[80,64]  \"\" @ \"\"\n";
  EXPECT_FALSE(IsNarrow(Narrowed(OneRow(kGiven, kMade))));
}

// A cast to an integer cuts off what the float had behind its point.
TEST(ReadNarrowWeights, LeavesFloatsThatBecomeIntegers) {
  constexpr const char* kGiven = "  %1 = weight \"w\" : bf16[80,64]\n";
  constexpr const char* kMade =
      "  %2 = Cast(%1) {to=\"i32\"} : i32[80,64]  \"\" @ \"\"\n"
      "  %8 = Cast(%2) {to=\"f32\"} : f32[80,64]  \"\" @ \"\"\n";
  EXPECT_FALSE(IsNarrow(Narrowed(OneRow(kGiven, kMade))));
  constexpr const char* kStored = "  %8 = Cast(%1) {to=\"f32\"} : f32[80,64]  \"\" @ \"\"\n";
  EXPECT_TRUE(IsNarrow(Narrowed(OneRow(kGiven, kStored))));
}

TEST(ReadNarrowWeights, TakesAScaleOverABatchDimBehindTheSum) {
  const std::string program = Narrowed(R"(graph "g" {
  %0 = input "x" : f32[3,1,40]
  %1 = weight "q" : i8[3,40,64]
  %2 = weight "s" : f32[3,1,1]
  %3 = Cast(%1) {to="f32"} : f32[3,40,64]  "" @ ""
  %4 = Mul(%3, %2) : f32[3,40,64]  "" @ ""
  %5 = MatMul(%0, %4) : f32[3,1,64]  "" @ ""
  output %5
}
)");
  EXPECT_TRUE(IsNarrow(program)) << program;
}

// What is returned is made by every run, so no weight that is known before.
TEST(ReadNarrowWeights, LeavesWeightsThatAreReturned) {
  const std::string program = Narrowed(R"(graph "g" {
  %0 = input "x" : f32[1,80]
  %1 = weight "q" : i8[80,64]
  %2 = weight "s" : f32[64]
  %3 = DequantizeLinear(%1, %2) {axis=1} : f32[80,64]  "" @ ""
  %4 = MatMul(%0, %3) : f32[1,64]  "" @ ""
  output %3
  output %4
}
)");
  EXPECT_FALSE(IsNarrow(program)) << program;
}

// Neither few nor, as a convolution, rows.
TEST(ReadNarrowWeights, LeavesSmallWeightsAndConvolutions) {
  EXPECT_FALSE(IsNarrow(Narrowed(R"(graph "g" {
  %0 = input "x" : f32[1,63]
  %1 = weight "q" : i8[63,64]
  %2 = Cast(%1) {to="f32"} : f32[63,64]  "" @ ""
  %3 = MatMul(%0, %2) : f32[1,64]  "" @ ""
  output %3
}
)")));
  EXPECT_FALSE(IsNarrow(Narrowed(R"(graph "g" {
  %0 = input "x" : f32[1,64,1,1]
  %1 = weight "q" : i8[64,64,1,1]
  %2 = Cast(%1) {to="f32"} : f32[64,64,1,1]  "" @ ""
  %3 = Conv(%0, %2) : f32[1,64,1,1]  "" @ ""
  output %3
}
)")));
}

TEST(RoundProducts, OnlyFastPlansRound) {
  auto graph = ParseGraph(Product("64,64", "64,64", "64,64").c_str());
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (Numerics numerics : {Numerics::kFp32Accumulate, Numerics::kBitwise, Numerics::kFast}) {
    auto model = MakePlan(*graph, DeviceNamed("generic-avx512-bf16"), {.numerics = numerics});
    ASSERT_TRUE(model.ok()) << model.status();
    std::string text;
    for (const PlannedKernel& kernel : model->kernels) text += kernel.text;
    EXPECT_EQ(text.find("bf16") != std::string::npos, numerics == Numerics::kFast);
  }
}

}  // namespace
}  // namespace fusion
