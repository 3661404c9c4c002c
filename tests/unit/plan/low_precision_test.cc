#include "core/plan/low_precision.h"

#include <gtest/gtest.h>

#include "core/graph/text.h"
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

// What does not lie along the sum cannot be loaded in pairs.
TEST(RoundProducts, LeavesConvolutions) {
  constexpr const char* kGraph = R"(graph "g" {
  %0 = input "x" : f32[1,64,9,9]
  %1 = weight "w" : f32[64,64,1,1]
  %2 = Conv(%0, %1) : f32[1,64,9,9]  "" @ ""
  output %2
}
)";
  EXPECT_EQ(RoundedOf(kGraph, "generic-avx512-bf16").casts, 0);
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
