// The rules that are shipped: deploy/rules/autofusion.textproto.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/graph/build/canonical.h"
#include "tests/support/rule_cases.h"
#include "tests/support/transformer_graph.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Rules Shipped() {
  auto rules =
      ReadRulesFile(StrCat(FUSION_SOURCE_DIR, "/deploy/rules/autofusion.textproto"), CheckRuleOps);
  FUSION_CHECK(rules.ok(), Message(rules.status()));
  return *std::move(rules);
}

// By name of the rule.
std::map<std::string, std::vector<Nodes>> ShippedMatchesIn(const Graph& graph) {
  AskKernel never = nullptr;
  Rules rules = Shipped();
  auto matches = MatchRules(graph, Cpu(), rules, never);
  FUSION_CHECK(matches.ok(), Message(matches.status()));
  std::map<std::string, std::vector<Nodes>> out;
  for (const RuleMatch& match : *matches) {
    out[rules[static_cast<size_t>(match.rule)].name].push_back(match.nodes);
  }
  return out;
}

std::string OpsOf(const Graph& graph, const Nodes& nodes) {
  return StrJoin(nodes, " ", [&](NodeId n) { return graph.node(n).def->name; });
}

TEST(ShippedRules, OnlyAdviseOrForbid) {
  Rules rules = Shipped();
  EXPECT_GE(rules.size(), 5u);
  for (const Rule& rule : rules) {
    EXPECT_NE(rule.action, RuleAction::kForce) << rule.name << " could make a request fail";
    EXPECT_EQ(rule.action == RuleAction::kForbid, rule.name == "no-conv-softmax");
  }
}

TEST(ShippedRules, FindTheArticlesPatternsInATransformer) {
  Graph graph = Canonicalise(TransformerGraph(2)).value().graph;
  std::map<std::string, std::vector<Nodes>> found = ShippedMatchesIn(graph);
  ASSERT_THAT(found["qkv-projection"], SizeIs(2));
  EXPECT_EQ(OpsOf(graph, found["qkv-projection"][0]), "MatMul MatMul MatMul");
  ASSERT_THAT(found["attention"], SizeIs(2));
  EXPECT_EQ(OpsOf(graph, found["attention"][0]), "MatMul Div Add Softmax MatMul");
  // Behind attention twice, behind the feed-forward block of the first layer once.
  EXPECT_THAT(found["post-attention-written-out"], SizeIs(3));
  EXPECT_THAT(found["post-attention"], IsEmpty());
  EXPECT_THAT(found["ffn"], IsEmpty()) << "its activation is no SiLU";
  EXPECT_THAT(found["no-conv-softmax"], IsEmpty());
}

constexpr const char* kSwish = R"(graph "g" {
  %0 = input "x" : f32[16,64]
  %1 = weight "w1" : f32[64,128]
  %2 = weight "b1" : f32[128]
  %3 = weight "w2" : f32[128,64]
  %4 = weight "b2" : f32[64]
  %5 = weight "g" : f32[64]
  %6 = weight "b" : f32[64]
  %7 = MatMul(%0, %1) : f32[16,128]  "" @ ""
  %8 = Add(%7, %2) : f32[16,128]  "" @ ""
  %9 = Sigmoid(%8) : f32[16,128]  "" @ ""
  %10 = Mul(%8, %9) : f32[16,128]  "" @ ""
  %11 = MatMul(%10, %3) : f32[16,64]  "" @ ""
  %12 = Add(%11, %4) : f32[16,64]  "" @ ""
  %13 = Add(%12, %0) : f32[16,64]  "" @ ""
  %14 = LayerNormalization(%13, %5, %6) {axis=-1} : f32[16,64]  "" @ ""
  output %14
}
)";

TEST(ShippedRules, FindTheFeedForwardBlockAndTheNormalisation) {
  Graph graph = GraphOf(kSwish);
  std::map<std::string, std::vector<Nodes>> found = ShippedMatchesIn(graph);
  EXPECT_THAT(found["ffn"], ElementsAre(Nodes{0, 1, 2, 3, 4, 5}));
  EXPECT_THAT(found["post-attention"], ElementsAre(Nodes{4, 5, 6, 7}));
  auto model = MakePlan(graph, Cpu(), {.rules = Shipped()});
  EXPECT_TRUE(model.ok()) << model.status();
}

TEST(ShippedRules, CostAtMostATenthOfWhatTheyTouch) {
  Graph graph = Canonicalise(TransformerGraph(2)).value().graph;
  for (const char* device : {"intel-skylake-server", "generic-avx2", "h100", "ascend_910b"}) {
    DeviceSpec spec = DeviceNamed(device, 0);
    auto plain = MakePlan(graph, spec, {});
    auto model = MakePlan(graph, spec, {.rules = Shipped()});
    ASSERT_TRUE(plain.ok() && model.ok()) << device << model.status();
    EXPECT_LE(model->plan.totals.estimated_us, plain->plan.totals.estimated_us / 0.9) << device;
  }
}

TEST(ShippedRules, ForbidAConvolutionAndASoftmaxInOneKernel) {
  Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[1,4,16,16]
  %1 = weight "w" : f32[8,4,1,1]
  %2 = Conv(%0, %1) : f32[1,8,16,16]  "" @ "conv"
  %3 = Softmax(%2) {axis=-1} : f32[1,8,16,16]  "" @ "softmax"
  output %3
}
)");
  EXPECT_THAT(Labels(PlanWithRules(graph))[0], HasSubstr("Convolve+ReduceMax"))
      << "without rules the softmax begins in the kernel of the convolution";
  auto model = MakePlan(graph, Cpu(), {.rules = Shipped()});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Labels(*model)[0], "Convolve");
  const PlanDecision* pair = PairOf(model->plan, 0, 1);
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->code, "rule");
  EXPECT_THAT(pair->reason, AllOf(HasSubstr("\"no-conv-softmax\""), HasSubstr("Conv+Softmax")));
}

TEST(ShippedRules, AreFoundInAHundredLayersWithoutReachingALimit) {
  Graph graph = TransformerGraph(100);
  std::map<std::string, std::vector<Nodes>> found = ShippedMatchesIn(graph);
  EXPECT_EQ(found["qkv-projection"].size(), 100u);
  EXPECT_EQ(found["attention"].size(), 100u);
  EXPECT_EQ(found["post-attention-written-out"].size(), 199u);
}

}  // namespace
}  // namespace fusion
