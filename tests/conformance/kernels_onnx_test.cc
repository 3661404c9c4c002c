// Compiled kernels against the results that ONNX's own tests store: each case whose ops we
// have is planned, generated, compiled for this machine and run. A case may be refused as
// unimplemented; it may not fail in any other way.
#include <gtest/gtest.h>

#include <limits>

#include "core/graph/build/canonical.h"
#include "core/onnx/inline_rule.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/onnx_case.h"
#include "tests/support/onnx_suite.h"

namespace fusion {
namespace {

// Every fourth case each, so that they run side by side.
constexpr int kShards = 4;
// Of each shard; a case that stops passing lowers the count.
constexpr int kFloor = 246;

absl::StatusOr<std::vector<HostTensor>> RunKernels(const Graph& graph,
                                                   const std::vector<HostTensor>& inputs,
                                                   const NamedWeight& weight) {
  ASSIGN_OR_RETURN(CanonicalGraph canonical, Canonicalise(graph));
  DeviceSpec device = DeviceNamed(RunnableDevices().back());
  ASSIGN_OR_RETURN(PlannedModel model, MakePlan(canonical.graph, device, {}));
  ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, CompilePlan(model, device));
  RETURN_IF_ERROR(executor->Prepare(
      [&](int i) { return weight(canonical.weight_names[static_cast<size_t>(i)]); }));
  return executor->Run(inputs);
}

class OnnxKernels : public testing::TestWithParam<int> {};

TEST_P(OnnxKernels, GiveTheStoredOutputs) {
  std::vector<std::string> cases = OnnxTests();
  if (cases.empty()) GTEST_SKIP() << "package libonnx-testdata is not installed";
  Tally tally;
  for (size_t i = static_cast<size_t>(GetParam()); i < cases.size(); i += kShards) {
    RunOnnxCase(cases[i], std::numeric_limits<int64_t>::max(), RunKernels, &tally);
  }
  tally.Record();
  tally.Print(StrCat("ONNX tests through kernels, part ", GetParam()));
  EXPECT_GE(tally.passed, kFloor);
}

// Real exported graphs, weights by reference, as a client sends them.
TEST(ExportedGraphs, GiveTheStoredOutputsThroughKernels) {
  const std::string root =
      FromEnvironment("FUSION_ONNX_GRAPHS", FUSION_SOURCE_DIR "/../shared/models");
  std::vector<std::string> cases = FindOnnxCases(root);
  if (cases.empty()) GTEST_SKIP() << "no exported graphs: set FUSION_ONNX_GRAPHS to a directory";
  Tally tally;
  for (const std::string& directory : cases) {
    RunOnnxCase(directory, kInlineLimitBytes, RunKernels, &tally);
  }
  tally.Record();
  tally.Print("exported graphs through kernels");
  EXPECT_GE(tally.passed, static_cast<int>(cases.size()));
}

INSTANTIATE_TEST_SUITE_P(Part, OnnxKernels, testing::Range(0, kShards));

}  // namespace
}  // namespace fusion
