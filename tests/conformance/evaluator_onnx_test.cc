// Importer and evaluator against the results that ONNX's own node tests store (package
// libonnx-testdata), and against real exported graphs where a collection of them lies beside the
// sources.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>

#include "core/graph/canonical.h"
#include "core/graph/evaluate.h"
#include "core/graph/text.h"
#include "core/onnx/weight_source.h"
#include "core/tensor/compare.h"
#include "tests/support/onnx_case.h"

namespace fusion {
namespace {

// What passes with the ops of core/op/defs; a test that stops passing or being recognised lowers
// the count.
constexpr int kNodeTestFloor = 376;
constexpr int kGraphFloor = 23;

struct Tally {
  int passed = 0;
  int failed = 0;
  std::map<std::string, int> skipped;  // by reason

  void Print(const std::string& title) const {
    int skips = 0;
    for (const auto& [reason, count] : skipped) skips += count;
    std::cout << title << ": passed " << passed << ", failed " << failed << ", skipped " << skips
              << " of " << passed + failed + skips << "\n";
    for (const auto& [reason, count] : skipped) {
      std::cout << "  skipped " << count << ": " << reason << "\n";
    }
  }
};

// What every imported graph must satisfy whatever it computes.
absl::Status CheckForms(const Graph& graph) {
  RETURN_IF_ERROR(Verify(graph));
  std::string text = ToString(graph);
  ASSIGN_OR_RETURN(Graph parsed, ParseGraph(text));
  if (ToString(parsed) != text) return Internal("the text form does not read back");
  return Canonicalise(graph).status();
}

// Runs one data set. OK and `*difference` empty: results agree.
absl::Status RunDataSet(const OnnxCase& test, const TestDataSet& data, int64_t inline_limit,
                        std::string* difference) {
  onnx::ModelProto model = test.model;
  FixParameterInputs(data, &model);
  ImportOptions options;
  options.inline_limit_bytes = inline_limit;
  options.dim_bindings = BindingsFor(model, data);
  ASSIGN_OR_RETURN(Graph graph, ImportOnnx(model, options));
  RETURN_IF_ERROR(CheckForms(graph));
  ASSIGN_OR_RETURN(std::vector<HostTensor> inputs, OrderInputs(graph, model, data));
  WeightSource source(model, test.directory);
  std::map<TensorId, HostTensor> weights;
  auto weight = [&](TensorId id) -> absl::StatusOr<const HostTensor*> {
    ASSIGN_OR_RETURN(weights[id], source.Load(graph.tensor(id).name));
    return &weights[id];
  };
  ASSIGN_OR_RETURN(std::vector<HostTensor> outputs,
                   Evaluate(graph, inputs, weight, {.threads = 2}));
  if (outputs.size() < data.outputs.size()) return Internal("outputs are missing");
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    Difference d = Compare(outputs[i], data.outputs[i].value);
    if (!d.ok()) StrAppend(difference, StrCat("output ", i, ": ", d.ToString(), "; "));
  }
  return absl::OkStatus();
}

// Runs a case and books the result.
void RunCase(const std::string& directory, int64_t inline_limit, Tally* tally) {
  std::string name = std::filesystem::path(directory).filename().string();
  auto test = LoadOnnxCase(directory);
  ASSERT_TRUE(test.ok()) << test.status();
  std::vector<std::string> missing = UnsupportedOps(test->model);
  if (!missing.empty()) {
    ++tally->skipped["no op " + missing[0]];
    return;
  }
  if (!TakesTensorsOnly(test->model)) {
    ++tally->skipped["an input that is no tensor"];
    return;
  }
  for (const std::string& set : FindTestDataSets(directory)) {
    auto data = LoadTestDataSet(set);
    if (absl::IsUnimplemented(data.status())) {
      ++tally->skipped["element type"];
      return;
    }
    ASSERT_TRUE(data.ok()) << data.status();
    std::string difference;
    absl::Status status = RunDataSet(*test, *data, inline_limit, &difference);
    if (absl::IsUnimplemented(status)) {
      ++tally->skipped[StrCat(name, ": ", Message(status))];
      return;
    }
    bool ok = status.ok() && difference.empty();
    tally->failed += ok ? 0 : 1;
    EXPECT_TRUE(ok) << name << ": " << status << " " << difference;
    if (!ok) return;
  }
  ++tally->passed;
}

std::string FromEnvironment(const char* variable, const std::string& fallback) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : fallback;
}

TEST(OnnxNodeTests, EvaluateToTheStoredOutputs) {
  std::string root =
      FromEnvironment("FUSION_ONNX_NODE_TESTS", "/usr/share/libonnx-testdata/data/node");
  std::vector<std::string> cases = FindOnnxCases(root);
  if (cases.empty()) GTEST_SKIP() << "package libonnx-testdata is not installed: no " << root;
  Tally tally;
  for (const std::string& directory : cases) {
    RunCase(directory, std::numeric_limits<int64_t>::max(), &tally);
  }
  tally.Print("ONNX node tests");
  EXPECT_GE(tally.passed, kNodeTestFloor);
}

TEST(ExportedGraphs, EvaluateToTheStoredOutputs) {
  std::string root = FromEnvironment("FUSION_ONNX_GRAPHS", FUSION_SOURCE_DIR "/../shared/models");
  std::vector<std::string> cases = FindOnnxCases(root);
  if (cases.empty()) GTEST_SKIP() << "no exported graphs: set FUSION_ONNX_GRAPHS to a directory";
  Tally tally;
  // Weights by reference, as a client sends them.
  for (const std::string& directory : cases) RunCase(directory, kInlineLimitBytes, &tally);
  tally.Print("exported graphs");
  EXPECT_GE(tally.passed, kGraphFloor);
}

}  // namespace
}  // namespace fusion
