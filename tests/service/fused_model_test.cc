// The client library against the real fusiond.
#include "client/fused_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "client/detect_target.h"
#include "core/onnx/model_io.h"
#include "tests/models/models.h"
#include "tests/support/daemon.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class FusedModelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = daemon->release();
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(daemon_->address());
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = client->release();
  }
  static void TearDownTestSuite() {
    delete client_;
    delete daemon_;
  }

  static GeneratedModel Mlp() {
    ModelParams params = FindModel("mlp")->defaults;
    params.rows = 16;
    params.cols = 32;
    params.depth = 3;
    return GenerateModel(*FindModel("mlp"), params).value();
  }
  static std::unique_ptr<FusedModel> LoadMlp(const FusedModelOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<FusedModel>> model =
        FusedModel::Load(*client_, Mlp().model, ".", options);
    FUSION_CHECK(model.ok(), "the model of the test loads");
    return *std::move(model);
  }
  static std::vector<HostTensor> Inputs(uint64_t seed) {
    return GenerateInputs(Mlp().inputs, seed);
  }

  static TestDaemon* daemon_;
  static Client* client_;
};
TestDaemon* FusedModelTest::daemon_ = nullptr;
Client* FusedModelTest::client_ = nullptr;

TEST_F(FusedModelTest, LoadsFromAFileAndRunsByOrderAndByName) {
  ScratchDir dir;
  ASSERT_TRUE(SaveModel(Mlp().model, dir.path("m.onnx")).ok());
  absl::StatusOr<std::unique_ptr<FusedModel>> model =
      FusedModel::Load(*client_, dir.path("m.onnx"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->inputs(), std::vector<std::string>{Mlp().inputs[0].name});
  RunProfile profile;
  absl::StatusOr<std::vector<HostTensor>> ordered = (*model)->Run(Inputs(1), &profile);
  ASSERT_TRUE(ordered.ok()) << ordered.status();
  EXPECT_EQ(profile.launch_us.size(), (*model)->plan().launches.size());
  std::map<std::string, HostTensor> named = {{Mlp().inputs[0].name, Inputs(1)[0]}};
  absl::StatusOr<std::vector<HostTensor>> by_name = (*model)->Run(named);
  ASSERT_TRUE(by_name.ok()) << by_name.status();
  EXPECT_EQ(*ordered, *by_name);
}

TEST_F(FusedModelTest, RunsOfSeveralThreadsDoNotDisturbEachOther) {
  std::unique_ptr<FusedModel> model = LoadMlp();
  constexpr int kThreads = 4;
  constexpr int kRuns = 50;
  std::vector<std::vector<HostTensor>> wanted;
  for (int t = 0; t < kThreads; ++t) {
    wanted.push_back(model->Run(Inputs(static_cast<uint64_t>(t))).value());
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<HostTensor> inputs = Inputs(static_cast<uint64_t>(t));
      for (int i = 0; i < kRuns; ++i) {
        absl::StatusOr<std::vector<HostTensor>> got = model->Run(inputs);
        if (!got.ok() || *got != wanted[static_cast<size_t>(t)]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(FusedModelTest, RunsOnTheCallersThreads) {
  std::vector<HostTensor> wanted = LoadMlp()->Run(Inputs(2)).value();
  int64_t calls = 0;
  FusedModelOptions options;
  options.executor.workers = 3;
  options.executor.parallel_tasks = [&calls](int64_t n, const TaskBody& body) {
    ++calls;
    for (int64_t i = 0; i < n; ++i) body(i, i + 1, static_cast<int>(i % 3));
  };
  std::unique_ptr<FusedModel> model = LoadMlp(options);
  int64_t before = calls;  // weights are packed on them too
  EXPECT_EQ(model->Run(Inputs(2)).value(), wanted);
  EXPECT_EQ(calls - before, model->plan().totals.kernels);
}

TEST_F(FusedModelTest, ErrorsNameTheInput) {
  std::unique_ptr<FusedModel> model = LoadMlp();
  std::string name = Mlp().inputs[0].name;
  HostTensor wrong(DType::kF32, {16, 31});
  absl::Status status = model->Run(std::vector{wrong}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr(Quote(name)));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("f32[16,31], expected f32[16,32]"));
  EXPECT_TRUE(absl::IsInvalidArgument(model->Run(std::vector<HostTensor>{}).status()));
  std::map<std::string, HostTensor> none;
  EXPECT_THAT(std::string(Message(model->Run(none).status())), HasSubstr("is missing"));
  std::map<std::string, HostTensor> more = {{name, Inputs(1)[0]}, {"other", wrong}};
  EXPECT_THAT(std::string(Message(model->Run(more).status())), HasSubstr("\"other\""));
}

TEST_F(FusedModelTest, ErrorsNameTheWeight) {
  onnx::ModelProto bare = Mlp().model;
  FusionRequest request;
  request.onnx_model = bare.SerializeAsString();
  request.target = DetectTarget();
  absl::Status missing =
      FusedModel::Load(*client_, request,
                       [](const std::string& name) -> absl::StatusOr<HostTensor> {
                         return NotFound("nobody has ", name);
                       })
          .status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  std::string asked;
  absl::Status other = FusedModel::Load(*client_, request, [&](const std::string& name) {
                         asked = name;
                         return absl::StatusOr<HostTensor>(HostTensor(DType::kF32, {7}));
                       }).status();
  EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
  EXPECT_THAT(std::string(Message(other)), HasSubstr(Quote(asked)));
  EXPECT_THAT(std::string(Message(other)), HasSubstr("is f32[7]"));
}

TEST_F(FusedModelTest, PassesOnWhyAModelIsRefused) {
  onnx::ModelProto model = Mlp().model;
  model.mutable_graph()->mutable_node(0)->set_op_type("FlyToMoon");
  absl::Status status = FusedModel::Load(*client_, model, ".").status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("FlyToMoon"));
}

TEST_F(FusedModelTest, OtherWeightsAreACacheHit) {
  ModelParams params = FindModel("mlp")->defaults;
  params.rows = 8;
  params.seed = 1;
  GeneratedModel first = GenerateModel(*FindModel("mlp"), params).value();
  params.seed = 2;
  GeneratedModel second = GenerateModel(*FindModel("mlp"), params).value();
  std::unique_ptr<FusedModel> a = FusedModel::Load(*client_, first.model, ".").value();
  std::unique_ptr<FusedModel> b = FusedModel::Load(*client_, second.model, ".").value();
  EXPECT_EQ(b->reply().cache, CacheOutcome::kHitMemory);
  std::vector<HostTensor> inputs = GenerateInputs(first.inputs, 1);
  EXPECT_NE(a->Run(inputs).value(), b->Run(inputs).value());
}

// A plan that no other test of this file reports about.
GeneratedModel ReportedMlp(int64_t rows) {
  ModelParams params = FindModel("mlp")->defaults;
  params.rows = rows;
  params.cols = 24;
  return GenerateModel(*FindModel("mlp"), params).value();
}

void RunOften(const FusedModel& model, const GeneratedModel& generated) {
  std::vector<HostTensor> inputs = GenerateInputs(generated.inputs, 1);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(model.Run(inputs).ok());
}

TEST_F(FusedModelTest, ReportsWhatRunsTookAlsoWithoutTheCallersClient) {
  GeneratedModel generated = ReportedMlp(5);
  FusedModelOptions options;
  options.reports.last_timeout = std::chrono::minutes(1);
  options.reports.background_load = false;  // a busy machine must not drop samples
  std::unique_ptr<Client> own = Client::Connect(daemon_->address()).value();
  std::unique_ptr<FusedModel> model = FusedModel::Load(*own, generated.model, ".", options).value();
  own.reset();
  Digest key = model->reply().plan_key;
  size_t kernels = model->plan().kernels.size();
  RunOften(*model, generated);
  model.reset();
  absl::StatusOr<std::vector<PlanReport>> reports = client_->GetReport(key);
  ASSERT_TRUE(reports.ok()) << reports.status();
  ASSERT_EQ(reports->size(), 1u);
  const PlanReport& report = reports->at(0);
  EXPECT_EQ(report.runs.calls, 60);
  EXPECT_GT(report.runs.samples, 0);
  EXPECT_GT(report.runs.median_us, 0);
  EXPECT_EQ(report.devices, std::vector<std::string>{DeviceName()});
  EXPECT_LE(report.kernels.size(), kernels);
  for (const KernelReport& kernel : report.kernels) EXPECT_GT(kernel.measured.median_us, 0);
}

TEST_F(FusedModelTest, ReportsNothingWhereItIsSwitchedOff) {
  GeneratedModel generated = ReportedMlp(6);
  FusedModelOptions options;
  options.reports.enabled = false;
  std::unique_ptr<FusedModel> model =
      FusedModel::Load(*client_, generated.model, ".", options).value();
  Digest key = model->reply().plan_key;
  RunOften(*model, generated);
  model.reset();
  absl::StatusOr<std::vector<PlanReport>> reports = client_->GetReport(key);
  ASSERT_TRUE(reports.ok()) << reports.status();
  for (const PlanReport& report : *reports) EXPECT_EQ(report.runs.calls, 0);
}

TEST_F(FusedModelTest, AServiceThatIsGoneDisturbsNoRun) {
  absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND);
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  std::unique_ptr<Client> client = Client::Connect((*daemon)->address()).value();
  FusedModelOptions options;
  options.reports.every = std::chrono::milliseconds(1);
  GeneratedModel generated = ReportedMlp(7);
  std::unique_ptr<FusedModel> model =
      FusedModel::Load(*client, generated.model, ".", options).value();
  (*daemon)->Stop();
  RunOften(*model, generated);
}

}  // namespace
}  // namespace fusion
