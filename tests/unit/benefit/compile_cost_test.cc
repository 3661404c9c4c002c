#include "core/benefit/compile_cost.h"

#include <gtest/gtest.h>

#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

TEST(CompileSeconds, GrowWithLinesAndProducts) {
  double empty = CompileSeconds("");
  EXPECT_GT(empty, 0) << "the compiler has to start";
  double one = CompileSeconds("schedule {\n");
  EXPECT_GT(one, empty);
  EXPECT_NEAR(CompileSeconds("schedule {\n}\n") - one, one - empty, 1e-12) << "line by line";
  EXPECT_GT(CompileSeconds("  mma t0 = p0, p1\n"), 10 * (one - empty) + empty);
}

TEST(CompileSeconds, ProductsOfRealSchedulesAreFound) {
  Graph graph = Canonicalise(ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[64,64]
  %1 = input "y" : f32[64,64]
  %2 = MatMul(%0, %1) : f32[64,64]  "" @ ""
  %3 = Add(%0, %1) : f32[64,64]  "" @ ""
  output %2
  output %3
}
)")
                                 .value())
                    .value()
                    .graph;
  PlannedModel model =
      MakePlan(graph, DeviceNamed("generic-avx2"), {.fusion = FusionMode::kOpByOp}).value();
  ASSERT_EQ(model.kernels.size(), 2u);
  double product = 0;
  double sum = 0;
  for (const PlannedKernel& kernel : model.kernels) {
    (kernel.schedule.label == "MatMul" ? product : sum) = CompileSeconds(kernel.text);
  }
  EXPECT_GT(product, sum + 0.03);
}

}  // namespace
}  // namespace fusion
