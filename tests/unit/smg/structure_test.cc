#include "core/smg/structure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/text.h"

namespace fusion {
namespace {

using ::testing::IsEmpty;
using ::testing::MatchesRegex;

Smg SmgOf(const std::string& body) {
  auto graph = ParseGraph(StrCat("graph \"g\" {\n", body, "}\n"));
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  Program program = BuildProgram(*graph).value();
  std::vector<LoopId> all;
  for (size_t i = 0; i < program.ops.size(); ++i) all.push_back(static_cast<LoopId>(i));
  return BuildSmg(program, all).value();
}

std::string HashOf(const std::string& body) {
  Smg smg = SmgOf(body);
  return StructureHash({&smg});
}

constexpr const char* kAttention = R"(
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = Softmax(%3) {axis=-1} : f32[10,12]  "" @ ""
  %5 = MatMul(%4, %2) : f32[10,6]  "" @ ""
  output %5
)";

TEST(StructureHash, IsSixteenDigits) {
  EXPECT_THAT(HashOf(kAttention), MatchesRegex("[0-9a-f]{16}"));
}

TEST(StructureHash, SizesAndTypesDoNotCount) {
  EXPECT_EQ(HashOf(kAttention), HashOf(R"(
  %0 = input "q" : f64[128,64]
  %1 = input "k" : f64[64,77]
  %2 = input "v" : f64[77,32]
  %3 = MatMul(%0, %1) : f64[128,77]  "" @ ""
  %4 = Softmax(%3) {axis=-1} : f64[128,77]  "" @ ""
  %5 = MatMul(%4, %2) : f64[128,32]  "" @ ""
  output %5
)"));
}

TEST(StructureHash, OpTypesDoNotCount) {
  // The softmax as an exporter spells it.
  EXPECT_EQ(HashOf(kAttention), HashOf(R"(
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = ReduceMax(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %5 = Sub(%3, %4) : f32[10,12]  "" @ ""
  %6 = Exp(%5) : f32[10,12]  "" @ ""
  %7 = ReduceSum(%6) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %8 = Div(%6, %7) : f32[10,12]  "" @ ""
  %9 = MatMul(%8, %2) : f32[10,6]  "" @ ""
  output %9
)"));
}

TEST(StructureHash, DimsThatAreAlwaysWalkedTogetherAreOne) {
  const char* one = R"(
  %0 = input "q" : f32[3,10,4]
  %1 = input "k" : f32[3,4,12]
  %2 = MatMul(%0, %1) : f32[3,10,12]  "" @ ""
  %3 = Relu(%2) : f32[3,10,12]  "" @ ""
  output %3
)";
  const char* two = R"(
  %0 = input "q" : f32[3,5,10,4]
  %1 = input "k" : f32[3,5,4,12]
  %2 = MatMul(%0, %1) : f32[3,5,10,12]  "" @ ""
  %3 = Relu(%2) : f32[3,5,10,12]  "" @ ""
  output %3
)";
  EXPECT_EQ(HashOf(one), HashOf(two));
  EXPECT_NE(HashOf(one), HashOf(R"(
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %3 = Relu(%2) : f32[10,12]  "" @ ""
  output %3
)")) << "without a batch the product maps other dims";
}

TEST(StructureHash, OrderAndCommutedOperandsDoNotCount) {
  EXPECT_EQ(HashOf(R"(
  %0 = input "x" : f32[8,5]
  %1 = input "y" : f32[8,5]
  %2 = Relu(%0) : f32[8,5]  "" @ ""
  %3 = Tanh(%1) : f32[8,5]  "" @ ""
  %4 = Add(%2, %3) : f32[8,5]  "" @ ""
  output %4
)"),
            HashOf(R"(
  %0 = input "x" : f32[7,3]
  %1 = input "y" : f32[7,3]
  %2 = Tanh(%0) : f32[7,3]  "" @ ""
  %3 = Relu(%1) : f32[7,3]  "" @ ""
  %4 = Add(%2, %3) : f32[7,3]  "" @ ""
  output %4
)"));
}

// What differs from this in one thing has another hash.
constexpr const char* kBase = R"(
  %0 = input "x" : f32[8,5]
  %1 = input "y" : f32[8,5]
  %2 = Relu(%0) : f32[8,5]  "" @ ""
  %3 = Sub(%2, %1) : f32[8,5]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=0} : f32[8]  "" @ ""
  output %4
)";

TEST(StructureHash, WhatDiffersHasAnotherHash) {
  const std::pair<const char*, const char*> kChanges[] = {
      {"another function", R"(
  %0 = input "x" : f32[8,5]
  %1 = input "y" : f32[8,5]
  %2 = Tanh(%0) : f32[8,5]  "" @ ""
  %3 = Sub(%2, %1) : f32[8,5]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=0} : f32[8]  "" @ ""
  output %4
)"},
      {"another edge: the difference reads the input itself", R"(
  %0 = input "x" : f32[8,5]
  %1 = input "y" : f32[8,5]
  %2 = Relu(%0) : f32[8,5]  "" @ ""
  %3 = Sub(%2, %0) : f32[8,5]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=0} : f32[8]  "" @ ""
  output %4
)"},
      {"operands that do not commute", R"(
  %0 = input "x" : f32[8,5]
  %1 = input "y" : f32[8,5]
  %2 = Relu(%0) : f32[8,5]  "" @ ""
  %3 = Sub(%1, %2) : f32[8,5]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=0} : f32[8]  "" @ ""
  output %4
)"},
      {"another reduction", R"(
  %0 = input "x" : f32[8,5]
  %1 = input "y" : f32[8,5]
  %2 = Relu(%0) : f32[8,5]  "" @ ""
  %3 = Sub(%2, %1) : f32[8,5]  "" @ ""
  %4 = ReduceMax(%3) {axes=[1], keepdims=0} : f32[8]  "" @ ""
  output %4
)"},
      {"another mapping: y is broadcast", R"(
  %0 = input "x" : f32[8,5]
  %1 = input "y" : f32[5]
  %2 = Relu(%0) : f32[8,5]  "" @ ""
  %3 = Sub(%2, %1) : f32[8,5]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=0} : f32[8]  "" @ ""
  output %4
)"},
      {"everything reduced", R"(
  %0 = input "x" : f32[8,5]
  %1 = input "y" : f32[8,5]
  %2 = Relu(%0) : f32[8,5]  "" @ ""
  %3 = Sub(%2, %1) : f32[8,5]  "" @ ""
  %4 = ReduceSum(%3) {axes=[0, 1], keepdims=0} : f32[]  "" @ ""
  output %4
)"},
      {"an op more", R"(
  %0 = input "x" : f32[8,5]
  %1 = input "y" : f32[8,5]
  %2 = Relu(%0) : f32[8,5]  "" @ ""
  %3 = Sub(%2, %1) : f32[8,5]  "" @ ""
  %4 = ReduceSum(%3) {axes=[1], keepdims=0} : f32[8]  "" @ ""
  %5 = Relu(%4) : f32[8]  "" @ ""
  output %5
)"},
  };
  std::map<std::string, std::string> seen = {{HashOf(kBase), "as it was"}};
  for (const auto& [what, body] : kChanges) {
    auto [other, fresh] = seen.emplace(HashOf(body), what);
    EXPECT_TRUE(fresh) << what << " is as " << other->second;
  }
}

TEST(StructureHash, PartsCountAlikeInOneSmgOrInSeveral) {
  const std::string first = R"(
  %0 = input "x" : f32[8,5]
  %1 = Relu(%0) : f32[8,5]  "" @ ""
  %2 = Tanh(%1) : f32[8,5]  "" @ ""
)";
  const std::string second = R"(
  %3 = input "y" : f32[4]
  %4 = Exp(%3) : f32[4]  "" @ ""
)";
  Smg a = SmgOf(first + "  output %2\n");
  Smg b = SmgOf(R"(
  %0 = input "y" : f32[4]
  %1 = Exp(%0) : f32[4]  "" @ ""
  output %1
)");
  Smg both = SmgOf(first + second + "  output %2\n  output %4\n");
  EXPECT_EQ(StructureHash({&a, &b}), StructureHash({&both}));
  EXPECT_EQ(StructureHash({&b, &a}), StructureHash({&both}));
  EXPECT_NE(StructureHash({&a}), StructureHash({&both}));
}

TEST(StructureHash, OneOpIsNoFusion) {
  EXPECT_THAT(HashOf("  %0 = input \"x\" : f32[8]\n  %1 = Relu(%0) : f32[8]  \"\" @ \"\"\n"
                     "  output %1\n"),
              IsEmpty());
  // Nor with a cast beside it.
  EXPECT_THAT(HashOf("  %0 = input \"x\" : f32[8]\n  %1 = Relu(%0) : f32[8]  \"\" @ \"\"\n"
                     "  %2 = Cast(%1) {to=\"f64\"} : f64[8]  \"\" @ \"\"\n  output %2\n"),
              IsEmpty());
}

}  // namespace
}  // namespace fusion
