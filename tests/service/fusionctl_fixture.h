#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/graph/evaluate/evaluate.h"
#include "core/import/import.h"
#include "core/onnx/model_io.h"
#include "core/onnx/reference_weights.h"
#include "core/onnx/test_data.h"
#include "core/onnx/weight_source.h"
#include "tests/models/models.h"
#include "tests/service/run_program.h"
#include "tests/support/daemon.h"

namespace fusion {

using Json = nlohmann::json;

/// Tests of the real fusionctl against the real fusiond, one for all tests of a suite.
class FusionctlTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = daemon->release();
  }
  static void TearDownTestSuite() {
    delete daemon_;
    daemon_ = nullptr;
  }

  /// Runs fusionctl against the shared server.
  static ProgramResult Ctl(std::vector<std::string> words) {
    words.insert(words.begin(), FUSIONCTL);
    words.insert(words.end(), {"--server", daemon_->address()});
    return RunProgram(words);
  }
  /// Runs it as it is.
  static ProgramResult BareCtl(std::vector<std::string> words) {
    words.insert(words.begin(), FUSIONCTL);
    return RunProgram(words);
  }
  /// The object it prints with --json.
  static Json CtlJson(std::vector<std::string> words, int code = 0) {
    words.push_back("--json");
    ProgramResult result = Ctl(std::move(words));
    EXPECT_EQ(result.code, code) << result.err;
    return Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }

  /// Writes a model of the generator, smaller where a test does not care.
  std::string Write(std::string_view name, const ModelParams& params) {
    absl::StatusOr<GeneratedModel> model = GenerateModel(*FindModel(name), params);
    FUSION_CHECK(model.ok(), "a generated model");
    return Write(model->model);
  }
  std::string Write(std::string_view name) { return Write(name, FindModel(name)->defaults); }
  std::string Write(const onnx::ModelProto& model) {
    std::string path = dir_.path("model.onnx");
    FUSION_CHECK(SaveModel(model, path).ok(), "a file of a test");
    return path;
  }
  static ModelParams SmallMlp() {
    ModelParams params = FindModel("mlp")->defaults;
    params.rows = 4;
    params.cols = 8;
    params.depth = 2;
    return params;
  }

  static inline TestDaemon* daemon_ = nullptr;
  ScratchDir dir_;
  int counter_ = 0;  // of directories
};

/// Inputs of a generated model and what the evaluator makes of them.
inline TestDataSet MakeData(const GeneratedModel& generated) {
  Graph graph = ImportOnnx(*ReferenceWeights(generated.model)).value();
  WeightSource source(generated.model);
  std::map<TensorId, HostTensor> held;
  std::vector<HostTensor> inputs = GenerateInputs(generated.inputs, 5);
  std::vector<HostTensor> outputs =
      Evaluate(graph, inputs, [&](TensorId id) -> absl::StatusOr<const HostTensor*> {
        held[id] = source.Load(graph.tensor(id).name).value();
        return &held[id];
      }).value();
  TestDataSet data;
  for (size_t i = 0; i < inputs.size(); ++i) {
    data.inputs.push_back({generated.inputs[i].name, std::move(inputs[i])});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    data.outputs.push_back(
        {generated.model.graph().output(static_cast<int>(i)).name(), std::move(outputs[i])});
  }
  return data;
}

/// One line that begins with the program's name, and no escape sequence.
inline void ExpectOneErrorLine(const ProgramResult& result) {
  EXPECT_THAT(result.err, testing::StartsWith("fusionctl: "));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err + result.out, testing::Not(testing::HasSubstr("\x1b")));
}

}  // namespace fusion
