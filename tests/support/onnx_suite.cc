#include "tests/support/onnx_suite.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/onnx/weight_source.h"
#include "core/tensor/compare.h"
#include "tests/support/light_models.h"
#include "tests/support/onnx_case.h"

namespace fusion {
namespace {

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
                        const GraphRunner& run, std::string* difference) {
  onnx::ModelProto model = test.model;
  FixParameterInputs(data, &model);
  ImportOptions options;
  options.inline_limit_bytes = inline_limit;
  options.dim_bindings = BindingsFor(model, data);
  ASSIGN_OR_RETURN(Graph graph, ImportOnnx(model, options));
  RETURN_IF_ERROR(CheckForms(graph));
  ASSIGN_OR_RETURN(std::vector<HostTensor> inputs, OrderInputs(graph, model, data));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& declared = graph.tensor(graph.inputs()[i]).type;
    const TensorType given{inputs[i].dtype(), Shape(inputs[i].dims())};
    if (given != declared) {
      return Unimplemented("its data are ", given.ToString(), " for an input of ",
                           declared.ToString());
    }
  }
  WeightSource source(model, test.directory);
  std::map<std::string, HostTensor> weights;
  auto weight = [&](const std::string& name) -> absl::StatusOr<const HostTensor*> {
    ASSIGN_OR_RETURN(weights[name], source.Load(name));
    return &weights[name];
  };
  ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, run(graph, inputs, weight));
  if (outputs.size() < data.outputs.size()) return Internal("outputs are missing");
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    Difference d = Compare(outputs[i], AsDeclared(data.outputs[i].value, outputs[i].dtype()));
    if (!d.ok()) StrAppend(difference, StrCat("output ", i, ": ", d.ToString(), "; "));
  }
  return absl::OkStatus();
}

}  // namespace

void Tally::Print(const std::string& title) const {
  int skips = 0;
  for (const auto& [reason, count] : skipped) skips += count;
  std::cout << title << ": passed " << passed << ", failed " << failed << ", skipped " << skips
            << " of " << passed + failed + skips << "\n";
  for (const auto& [reason, count] : skipped) {
    std::cout << "  skipped " << count << ": " << reason << "\n";
  }
}

void Tally::Record() const {
  int skips = 0;
  for (const auto& [reason, count] : skipped) skips += count;
  testing::Test::RecordProperty("passed", passed);
  testing::Test::RecordProperty("in_scope", passed + failed + skips - beside);
  testing::Test::RecordProperty("beside", beside);
  int number = 0;
  for (const auto& [reason, count] : skipped) {
    testing::Test::RecordProperty(StrCat("left_", number++), StrCat(count, ": ", reason));
  }
}

void RunOnnxCase(const std::string& directory, int64_t inline_limit, const GraphRunner& run,
                 Tally* tally) {
  std::string name = std::filesystem::path(directory).filename().string();
  auto test = LoadOnnxCase(directory);
  ASSERT_TRUE(test.ok()) << test.status();
  const std::string beside = BesideTensors(test->model);
  if (!beside.empty()) {
    ++tally->beside;
    ++tally->skipped[beside];
    return;
  }
  std::vector<std::string> missing = UnsupportedOps(test->model);
  if (!missing.empty()) {
    ++tally->skipped["no op " + missing[0]];
    return;
  }
  const std::string random = StrCat(directory, "/test_data_set_rw");
  const bool light = std::filesystem::exists(random);
  if (light) RandomiseLightWeights(&test->model);
  for (const std::string& set : FindTestDataSets(directory)) {
    auto data = LoadTestDataSet(set);
    if (light && data.ok()) {
      auto outputs = LoadTestDataSet(random);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      data->outputs = std::move(outputs->outputs);
    }
    if (absl::IsUnimplemented(data.status())) {
      ++tally->skipped["element type"];
      return;
    }
    ASSERT_TRUE(data.ok()) << data.status();
    std::string difference;
    absl::Status status = RunDataSet(*test, *data, inline_limit, run, &difference);
    if (absl::IsUnimplemented(status)) {
      const bool training = Message(status).find("training mode") != std::string::npos;
      tally->beside += training ? 1 : 0;
      ++tally->skipped[training ? "training" : StrCat(name, ": ", Message(status))];
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

std::vector<std::string> OnnxTests() {
  const std::string root = FromEnvironment("FUSION_ONNX_TESTS", "/usr/share/libonnx-testdata/data");
  std::vector<std::string> out;
  for (const char* suite : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    for (std::string& directory : FindOnnxCases(StrCat(root, "/", suite))) {
      out.push_back(std::move(directory));
    }
  }
  return out;
}

}  // namespace fusion
