// fusionctl epochs against the real fusiond.
#include "client/client.h"
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class FusionctlEpochsTest : public FusionctlTest {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<TestDaemon>> own =
        TestDaemon::Start(FUSIOND, {"--store", dir_.path("store")});
    ASSERT_TRUE(own.ok()) << own.status();
    own_ = *std::move(own);
  }
  ProgramResult Epochs(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {FUSIONCTL, "epochs"});
    words.insert(words.end(), {"--server", own_->local_address()});
    return RunProgram(words);
  }
  // Plans a model of so many rows, and reports that all of it takes three times as long as
  // estimated.
  void PlanAndReport(int64_t rows) {
    ModelParams params = SmallMlp();
    params.rows = rows;
    FusionRequest request;
    request.onnx_model = GenerateModel(*FindModel("mlp"), params)->model.SerializeAsString();
    request.target.isa = "avx2";
    request.mode = PlanMode::kPlanOnly;
    const std::unique_ptr<Client> client = Client::Connect(own_->address()).value();
    const FusionReply reply = client->PlanFusion(request).value();
    LatencyReport report{.plan_key = reply.plan_key, .threads = reply.plan.threads, .device = "m"};
    for (size_t i = 0; i < reply.plan.launches.size(); ++i) {
      const auto group = static_cast<size_t>(reply.plan.launches[i].group);
      const double us = 3 * reply.plan.groups[group].estimate.time_us;
      report.launches.push_back(
          {.launch = static_cast<int>(i), .samples_us = std::vector<double>(8, us)});
    }
    EXPECT_TRUE(client->ReportLatency(report).ok());
  }

  std::unique_ptr<TestDaemon> own_;
};

TEST_F(FusionctlEpochsTest, ShowsWhatReportsHaveTaught) {
  EXPECT_THAT(Epochs().out, HasSubstr("plans are made with the constants of the device specs"));
  EXPECT_THAT(Epochs({"--train"}).out, HasSubstr("no latencies were reported"));
  for (int64_t rows = 1; rows <= 12; ++rows) PlanAndReport(rows * 7);
  const ProgramResult trained = Epochs({"--train"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("epoch "));
  EXPECT_THAT(trained.out, HasSubstr("measured / spec:"));
  const Json json = Json::parse(Epochs({"--json", "--limit", "1"}).out);
  ASSERT_EQ(json["epochs"].size(), 1u);
  EXPECT_GT(json["epochs"][0]["before"]["median"], json["epochs"][0]["after"]["median"]);
  const std::string number = json["epochs"][0]["number"].dump();
  const ProgramResult back = Epochs({"--roll-back", number, "--reason", "a test"});
  if (json["epochs"][0]["state"] == "rejected") {
    EXPECT_THAT(back.err, HasSubstr("is rejected; expected one in use"));
    return;
  }
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_THAT(back.out, HasSubstr("rolled back: a test"));
}

TEST_F(FusionctlEpochsTest, BadOrdersAreNamed) {
  EXPECT_EQ(Epochs({"--train", "--roll-back", "1"}).code, 2);
  EXPECT_EQ(Epochs({"--roll-back", "0"}).code, 2);
  EXPECT_EQ(Epochs({"--reason", "why"}).code, 2) << "of what?";
  const ProgramResult none = Epochs({"--roll-back", "7"});
  EXPECT_NE(none.code, 0);
  EXPECT_THAT(none.err, HasSubstr("no epoch 7"));
  EXPECT_EQ(BareCtl({"epochs"}).code, 2) << "of which service?";
}

}  // namespace
}  // namespace fusion
