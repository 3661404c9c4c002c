#include "core/plan/outline/layer_sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/plan/outline/plan_outline.h"
#include "core/plan/planner.h"
#include "tests/support/plan_cases.h"
#include "tests/support/transformer_graph.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Of the text form; tensors and nodes that are computed have no names.
Graph Parsed(std::string_view body) {
  std::string text = "graph \"\" {\n";
  for (const std::string_view line : StrSplit(body, '\n')) {
    StrAppend(&text,
              StrCat(line, line.find('(') != std::string_view::npos ? "  \"\" @ \"\"" : "", "\n"));
  }
  const auto graph = ParseGraph(text + "}\n");
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  return *graph;
}

std::vector<NodeSections> SectionsOf(const Graph& graph) {
  const auto program = BuildProgram(graph);
  FUSION_CHECK(program.ok(), Message(program.status()));
  return LayerSectionsOf(*program, graph.nodes().size());
}

// The sections of the products of a graph, in the order of its nodes.
std::vector<std::string> Products(const Graph& graph) {
  std::vector<std::string> out;
  const std::vector<NodeSections> sections = SectionsOf(graph);
  for (size_t n = 0; n < sections.size(); ++n) {
    const Node& node = graph.nodes()[n];
    const bool product = node.def->name == "MatMul" || node.def->name == "Gemm";
    if (product) out.push_back(SectionNames(sections[n].products));
  }
  return out;
}

// A layer whose normalisation is behind each part, as BERT has it; names say nothing.
constexpr char kPostNormLayer[] = R"(
  %0 = input "a" : f32[16,32]
  %1 = weight "b" : f32[32,32]
  %2 = weight "c" : f32[32,32]
  %3 = weight "d" : f32[32,32]
  %4 = weight "e" : f32[32,32]
  %5 = weight "f" : f32[32,64]
  %6 = weight "g" : f32[64,32]
  %7 = weight "h" : f32[32]
  %8 = MatMul(%0, %1) : f32[16,32]
  %9 = MatMul(%0, %2) : f32[16,32]
  %10 = MatMul(%0, %3) : f32[16,32]
  %11 = Transpose(%9) {perm=[1,0]} : f32[32,16]
  %12 = MatMul(%8, %11) : f32[16,16]
  %13 = Exp(%12) : f32[16,16]
  %14 = ReduceSum(%13) {axes=[1]} : f32[16,1]
  %15 = Div(%13, %14) : f32[16,16]
  %16 = MatMul(%15, %10) : f32[16,32]
  %17 = MatMul(%16, %4) : f32[16,32]
  %18 = Add(%17, %0) : f32[16,32]
  %19 = Mul(%18, %7) : f32[16,32]
  %20 = MatMul(%19, %5) : f32[16,64]
  %21 = Relu(%20) : f32[16,64]
  %22 = MatMul(%21, %6) : f32[16,32]
  %23 = Add(%22, %19) : f32[16,32]
  output %23
)";

TEST(LayerSections, AreDerivedFromWhatProductsFeed) {
  EXPECT_THAT(
      Products(Parsed(kPostNormLayer)),
      ElementsAre("QKV", "QKV", "QKV", "attention", "attention", "post-attention", "FFN", "FFN"));
}

TEST(LayerSections, OtherNodesBelongToTheDeepestProductBehindThem) {
  const Graph graph = Parsed(kPostNormLayer);
  const std::vector<NodeSections> sections = SectionsOf(graph);
  std::map<std::string, std::string> others;
  for (size_t n = 0; n < sections.size(); ++n) {
    if (sections[n].others != 0)
      others[graph.nodes()[n].def->name] = SectionNames(sections[n].others);
  }
  EXPECT_EQ(others["Exp"], "attention");
  EXPECT_EQ(others["Div"], "attention");
  EXPECT_EQ(others["Mul"], "post-attention");
  EXPECT_EQ(others["Relu"], "FFN");
  EXPECT_EQ(others["Add"], "FFN") << "the last one";
}

TEST(LayerSections, OfEachLayerOfADecoder) {
  const Graph graph = Canonicalise(TransformerGraph(2, 32, 64, 4)).value().graph;
  std::map<std::string, int> count;
  for (const std::string& section : Products(graph)) ++count[section];
  EXPECT_EQ(count, (std::map<std::string, int>{
                       {"QKV", 6}, {"attention", 4}, {"post-attention", 2}, {"FFN", 4}}));
}

TEST(LayerSections, ThereAreNoneWithoutAttention) {
  EXPECT_THAT(SectionsOf(Parsed(R"(
    %0 = input "x" : f32[1,4,8,8]
    %1 = weight "w" : f32[4,4,3,3]
    %2 = Conv(%0, %1) {pads=[1,1,1,1]} : f32[1,4,8,8]
    %3 = Relu(%2) : f32[1,4,8,8]
    %4 = Conv(%3, %1) {pads=[1,1,1,1]} : f32[1,4,8,8]
    %5 = Add(%4, %0) : f32[1,4,8,8]
    output %5
)")),
              IsEmpty());
  // A classifier: a softmax behind a product, no product behind the softmax.
  EXPECT_THAT(SectionsOf(Parsed(R"(
    %0 = input "x" : f32[4,8]
    %1 = weight "w" : f32[8,8]
    %2 = MatMul(%0, %1) : f32[4,8]
    %3 = Softmax(%2) {axis=-1} : f32[4,8]
    output %3
)")),
              IsEmpty());
  // Two products with a sigmoid between them are no attention.
  EXPECT_THAT(SectionsOf(Parsed(R"(
    %0 = input "x" : f32[4,8]
    %1 = weight "w" : f32[8,8]
    %2 = MatMul(%0, %1) : f32[4,8]
    %3 = Sigmoid(%2) : f32[4,8]
    %4 = MatMul(%3, %1) : f32[4,8]
    output %4
)")),
              IsEmpty());
}

TEST(LayerSections, AProductOfAWeightIsNoScore) {
  // Chooses between experts: softmax(x w) y.
  EXPECT_THAT(SectionsOf(Parsed(R"(
    %0 = input "x" : f32[4,8]
    %1 = weight "w" : f32[8,8]
    %2 = input "y" : f32[8,8]
    %3 = MatMul(%0, %1) : f32[4,8]
    %4 = Softmax(%3) {axis=-1} : f32[4,8]
    %5 = MatMul(%4, %2) : f32[4,8]
    output %5
)")),
              IsEmpty());
}

TEST(PlanOutline, GroupsHaveTheSectionsOfTheirProducts) {
  const Graph graph = Canonicalise(Parsed(kPostNormLayer)).value().graph;
  const auto planned = MakePlan(graph, Cpu(), {.fusion = FusionMode::kOpByOp});
  ASSERT_TRUE(planned.ok()) << planned.status();
  const PlanOutline outline = OutlineOf(graph, planned->plan);
  ASSERT_EQ(outline.sections.size(), planned->plan.groups.size());
  std::map<SectionSet, int> launches;
  for (const PlanLaunch& launch : planned->plan.launches) {
    ++launches[outline.sections[static_cast<size_t>(launch.group)]];
  }
  // Three projections; scores, Exp, ReduceSum, Div, sum; projection, Add, Mul; product, Relu,
  // product, Add.
  EXPECT_EQ(launches, (std::map<SectionSet, int>{{kQkvSection, 3},
                                                 {kAttentionSection, 5},
                                                 {kPostAttentionSection, 3},
                                                 {kFeedForwardSection, 4}}));
}

TEST(PlanOutline, ThePeakIsOfTensorsThatAreNeededAtATime) {
  // Of 1 KiB each; the output is the caller's, a reshaped tensor has no memory of its own.
  const Graph graph = Canonicalise(Parsed(R"(
    %0 = input "x" : f32[256]
    %1 = Exp(%0) : f32[256]
    %2 = Neg(%1) : f32[256]
    %3 = Reshape(%2) {shape=[2,128]} : f32[2,128]
    %4 = Reshape(%1) {shape=[2,128]} : f32[2,128]
    %5 = Mul(%3, %4) : f32[2,128]
    %6 = Abs(%5) : f32[2,128]
    output %6
)"))
                          .value()
                          .graph;
  const auto planned = MakePlan(graph, Cpu(), {.fusion = FusionMode::kOpByOp});
  ASSERT_TRUE(planned.ok()) << planned.status();
  const PlanOutline outline = OutlineOf(graph, planned->plan);
  EXPECT_EQ(outline.op_by_op_peak_bytes, 3 * 1024);
  EXPECT_THAT(outline.sections, IsEmpty());
}

}  // namespace
}  // namespace fusion
