// Importer and evaluator against the results that ONNX's own node tests store (package
// libonnx-testdata), and against real exported graphs where a collection of them lies beside the
// sources.
#include <gtest/gtest.h>

#include <limits>

#include "core/graph/evaluate/evaluate.h"
#include "core/onnx/inline_rule.h"
#include "tests/support/onnx_case.h"
#include "tests/support/onnx_suite.h"

namespace fusion {
namespace {

// What passes with the ops of core/op/defs; a test that stops passing or being recognised lowers
// the count.
constexpr int kNodeTestFloor = 1004;
constexpr int kGraphFloor = 48;

absl::StatusOr<std::vector<HostTensor>> RunEvaluator(const Graph& graph,
                                                     const std::vector<HostTensor>& inputs,
                                                     const NamedWeight& weight) {
  return Evaluate(graph, inputs, [&](TensorId id) { return weight(graph.tensor(id).name); },
                  {.threads = 2});
}

TEST(OnnxTests, EvaluateToTheStoredOutputs) {
  std::vector<std::string> cases = OnnxTests();
  if (cases.empty()) GTEST_SKIP() << "package libonnx-testdata is not installed";
  Tally tally;
  for (const std::string& directory : cases) {
    RunOnnxCase(directory, std::numeric_limits<int64_t>::max(), RunEvaluator, &tally);
  }
  tally.Print("ONNX tests");
  EXPECT_GE(tally.passed, kNodeTestFloor);
}

TEST(ExportedGraphs, EvaluateToTheStoredOutputs) {
  std::string root = FromEnvironment("FUSION_ONNX_GRAPHS", FUSION_SOURCE_DIR "/../shared/models");
  std::vector<std::string> cases = FindOnnxCases(root);
  if (cases.empty()) GTEST_SKIP() << "no exported graphs: set FUSION_ONNX_GRAPHS to a directory";
  Tally tally;
  // Weights by reference, as a client sends them.
  for (const std::string& directory : cases)
    RunOnnxCase(directory, kInlineLimitBytes, RunEvaluator, &tally);
  tally.Print("exported graphs");
  EXPECT_GE(tally.passed, kGraphFloor);
}

}  // namespace
}  // namespace fusion
