// The graph that the key of a plan holds, for drawing it.
#include "core/pipeline/requests/graph_of_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/pipeline/requests/plan_key.h"
#include "core/view/plan_picture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The key of a plan for a graph in text form.
std::string KeyOf(const std::string& graph_text) {
  const Graph graph = ParseGraph(graph_text).value();
  return PlanKey({.graph = Canonicalise(graph)->key_text, .device = "toy CPU 1 avx2"});
}

TEST(GraphOfKey, IsThatOfThePlan) {
  const absl::StatusOr<Graph> graph = GraphOfKey(KeyOf(R"(graph "g" {
  %0 = input "x" : f32[4,8]
  %1 = weight "w" : f32[8,8]
  %2 = MatMul(%0, %1) : f32[4,8]  "" @ ""
  %3 = Relu(%2) : f32[4,8]  "" @ ""
  output %3
}
)"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes().size(), 2u);
  PlanExplanation explanation;
  explanation.plan.nodes = 2;
  explanation.plan.groups = {{.nodes = {0, 1}, .label = "MatMul+Relu"}};
  const std::string dot = PlanPicture(*graph, explanation);
  EXPECT_THAT(dot, AllOf(HasSubstr("label=\"group 0, "), HasSubstr("label=\"input 0\""),
                         HasSubstr("label=\"output 0\""), HasSubstr("label=\"MatMul\"")));
}

// Of them the key has the digest only.
TEST(GraphOfKey, LargeConstantsAreWeights) {
  std::string values;
  for (int i = 0; i < 1024; ++i) values += StrCat(i == 0 ? "" : ", ", i);
  std::string text = R"(graph "g" {
  %0 = input "x" : f32[1024]
  %1 = const "c" : f32[1024] {VALUES}
  %2 = Mul(%0, %1) : f32[1024]  "" @ ""
  output %2
}
)";
  text.replace(text.find("VALUES"), 6, values);
  const std::string key = KeyOf(text);
  ASSERT_THAT(ParsePlanKey(key)->graph, AllOf(HasSubstr(" sha256 "), Not(HasSubstr("1023"))));
  const absl::StatusOr<Graph> graph = GraphOfKey(key);
  ASSERT_TRUE(graph.ok()) << graph.status();
  int weights = 0;
  for (const Tensor& tensor : graph->tensors()) weights += tensor.kind == TensorKind::kWeight;
  EXPECT_EQ(weights, 1);
}

TEST(GraphOfKey, AKeyWithoutAGraphIsRefused) {
  EXPECT_TRUE(absl::IsFailedPrecondition(GraphOfKey("no key").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(GraphOfKey("").status()));
  const absl::Status none =
      GraphOfKey(PlanKey({.graph = "graph \"g\" { nonsense sha256 }", .device = "toy"})).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(none));
  EXPECT_THAT(std::string(none.message()), HasSubstr("does not hold its graph"));
}

}  // namespace
}  // namespace fusion
