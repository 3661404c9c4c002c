// What a real fusiond learns from reports: constants, their epochs, and fusions that are undone.
#include <algorithm>
#include <cmath>
#include <set>

#include "client/admin_client.h"
#include "client/client.h"
#include "core/benefit/terms.h"
#include "core/device/host_isa.h"
#include "tests/models/models.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class LearningTest : public ServerTest {
 protected:
  void Serve(std::vector<std::string> args = {}) {
    if (!testing::Value(args, Contains("--store"))) {
      args.insert(args.end(), {"--store", dir_.path("store")});
    }
    args.insert(args.end(), {"--canary-percent", "100"});
    Start(std::move(args));
    client_ = Client::Connect(daemon_->address()).value();
    owner_ = Client::Connect(daemon_->local_address()).value();
  }
  // What is only planned is for one device, whatever machine runs the test.
  FusionReply Plan(int64_t width, FusionMode fusion = FusionMode::kFused,
                   PlanMode mode = PlanMode::kPlanOnly) {
    FusionRequest request;
    request.onnx_model = LinearReluModel(width).Bytes();
    request.target.isa = mode == PlanMode::kPlanOnly ? "avx2" : std::string(HostIsaName());
    request.mode = mode;
    request.options.fusion = fusion;
    absl::StatusOr<FusionReply> reply = client_->PlanFusion(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return *std::move(reply);
  }
  // Every launch takes `times` as long as the device spec says.
  void Report(const FusionReply& reply, const std::vector<double>& launch_us) {
    LatencyReport report{.plan_key = reply.plan_key,
                         .kernels = LaunchedKernels(reply.plan),
                         .threads = reply.plan.threads,
                         .device = "a machine"};
    for (size_t i = 0; i < reply.plan.launches.size(); ++i) {
      std::vector<double> samples;
      for (double noise : {0.99, 1.0, 1.01, 1.0, 0.995, 1.005, 1.0, 1.0, 1.002, 0.998}) {
        samples.push_back(launch_us[i] * noise);
      }
      report.launches.push_back({.launch = static_cast<int>(i), .samples_us = samples});
    }
    const absl::Status sent = client_->ReportLatency(report).status();
    EXPECT_TRUE(sent.ok()) << sent;
  }
  FusionReply PlanModel(const std::string& name, FusionMode fusion = FusionMode::kFused) {
    FusionRequest request;
    request.onnx_model = GenerateModel(name).value().model.SerializeAsString();
    request.target.isa = "avx2";
    request.target.threads = 2;
    request.mode = PlanMode::kPlanOnly;
    request.options.fusion = fusion;
    absl::StatusOr<FusionReply> reply = client_->PlanFusion(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return *std::move(reply);
  }
  // Launches of plans that are made now, by model.
  std::map<std::string, int64_t> LaunchesOf(const std::vector<std::string>& models, bool learns) {
    std::map<std::string, int64_t> out;
    for (const std::string& name : models) {
      const FusionReply planned = PlanModel(name);
      out[name] = planned.plan.totals.launches;
      EXPECT_EQ(planned.plan.calibration.epoch > 0, learns) << name;
    }
    return out;
  }
  // What the launches take on a device with these constants.
  static std::vector<double> TimesOn(const CostFactors& device, const FusionReply& reply) {
    std::vector<double> out;
    for (const PlanLaunch& launch : reply.plan.launches) {
      const PlanGroup& group = reply.plan.groups[static_cast<size_t>(launch.group)];
      out.push_back(TimeOf(group.terms, device));
    }
    return out;
  }
  static std::vector<double> EstimatesOf(const FusionReply& reply, double times) {
    std::vector<double> out;
    for (const PlanLaunch& launch : reply.plan.launches) {
      const PlanGroup& group = reply.plan.groups[static_cast<size_t>(launch.group)];
      out.push_back(group.estimate.time_us * times);
    }
    return out;
  }
  std::vector<std::string> Train() {
    auto trained = AdminClient(*owner_).TrainEpochs("a test");
    EXPECT_TRUE(trained.ok()) << trained.status();
    if (!trained.ok()) return {};
    return {trained->outcomes().begin(), trained->outcomes().end()};
  }
  std::string StateOf(int64_t number) {
    const EpochList list = client_->ListEpochs().value();
    for (const Epoch& epoch : list.epochs) {
      if (epoch.number == number) return std::string(EpochStateName(epoch.state()));
    }
    return "none";
  }

  std::unique_ptr<Client> client_;
  std::unique_ptr<Client> owner_;
};

TEST_F(LearningTest, NewPlansAreMadeWithWhatReportsHaveTaught) {
  Serve();
  EXPECT_EQ(client_->ListEpochs().value(), EpochList());
  EXPECT_THAT(Train(), ElementsAre(HasSubstr("no latencies were reported")));
  for (int64_t width = 8; width <= 96; width += 8) {
    const FusionReply planned = Plan(width);
    EXPECT_EQ(planned.plan.calibration, PlanCalibration());
    Report(planned, EstimatesOf(planned, 3));
  }
  // Fits may have been due by themselves before.
  const std::vector<std::string> outcomes = Train();
  const auto newest = [&] {
    const EpochList list = client_->ListEpochs().value();
    return list.epochs.empty() ? Epoch() : list.epochs.front();
  };
  ASSERT_TRUE(Eventually([&] { return newest().state() == EpochState::kCanary; }))
      << outcomes.front();
  const Epoch epoch = newest();
  EXPECT_EQ(epoch.device.isa, "avx2");
  EXPECT_LT(epoch.after.errors.median, 0.5 * epoch.before.errors.median);
  EXPECT_NEAR(epoch.before.errors.median, std::log(3), 0.05);

  const FusionReply made = Plan(104);
  EXPECT_EQ(made.plan.calibration.epoch, epoch.number);
  EXPECT_EQ(made.plan.calibration.factors, epoch.factors);
  for (int i = 0; i < 8; ++i) Report(made, EstimatesOf(made, 1));
  EXPECT_EQ(StateOf(epoch.number), "active");
  EXPECT_EQ(Metric("fusion_epochs{state=\"active\"}"), 1);

  EXPECT_EQ(daemon_->Stop().exit_code, 0);
  Serve();
  EXPECT_EQ(StateOf(epoch.number), "active") << "after a restart";
  EXPECT_EQ(Plan(112).plan.calibration.epoch, epoch.number);
  EXPECT_EQ(Plan(8).plan.calibration.epoch, 0) << "plans that are there stay";
  auto back = AdminClient(*owner_).RollBackEpoch(epoch.number, "a test");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Plan(120).plan.calibration.epoch, 0);
  EXPECT_EQ(AdminClient(*owner_).RollBackEpoch(900, "").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(AdminClient(*owner_).RollBackEpoch(epoch.number, "").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(LearningTest, AFusionThatWasMeasuredSlowerThanItsPartsIsUndone) {
  Serve();
  const FusionReply fused = Plan(16, FusionMode::kFused, PlanMode::kCompile);
  ASSERT_THAT(fused.plan.launches, SizeIs(1));
  const FusionReply parts = Plan(16, FusionMode::kOpByOp, PlanMode::kCompile);
  ASSERT_THAT(parts.plan.launches, SizeIs(3));
  for (int i = 0; i < 3; ++i) Report(parts, {10, 10, 10});
  for (int i = 0; i < 3; ++i) Report(fused, {30});
  EXPECT_THAT(Plan(16).plan.launches, SizeIs(1)) << "as fast as its parts";
  for (int i = 0; i < 12; ++i) Report(fused, {90});
  FusionReply now;
  ASSERT_TRUE(Eventually([&] {
    now = Plan(16, FusionMode::kFused, PlanMode::kCompile);
    return now.plan.launches.size() == 3;
  }));
  EXPECT_EQ(now.plan_key, fused.plan_key);
  ASSERT_THAT(now.plan.fallbacks, SizeIs(3));
  EXPECT_THAT(now.plan.fallbacks[0].reason, HasSubstr("MatMul+Add+Relu takes 90"));
  EXPECT_THAT(now.warnings,
              Contains("3 nodes are not fused: the kernel was measured slower than its parts"));
  ASSERT_TRUE(Eventually([&] { return client_->ListEpochs().value().decisions.size() == 2; }));
  EXPECT_THAT(client_->ListEpochs().value().decisions[0].text, HasSubstr("made again"));
  // It is measured, and faster: it stays.
  for (int i = 0; i < 3; ++i) Report(now, {10, 10, 10});
  EXPECT_THAT(client_->ListEpochs().value().decisions[0].text, HasSubstr("confirmed: measured"));
  EXPECT_EQ(Metric("fusion_plans_renewed_total{result=\"changed\"}"), 1);
}

// Free launches split, dear ones join: new plans follow the device that the reports are about.
TEST_F(LearningTest, PlansFollowASimulatedDeviceWithinTwoHundredReports) {
  // Twenty reports about each, and op by op too, as fusionctl bench reports: small kernels say what
  // a launch costs.
  const std::vector<std::string> reported = {"llama_small_decode", "mha", "mbconv", "softmax",
                                             "layernorm"};
  const std::vector<std::string> judged = {"mlp", "mha_nomask", "conv_bn_relu", "t5_encoder"};
  constexpr double kFree = 1.0 / 64;
  struct Case {
    const char* store;
    CostFactors device;
    int sign;  // of the change of the number of launches
  };
  const Case cases[] = {{"free",
                         {.launch = kFree,
                          .barrier = kFree,
                          .task = kFree,
                          .local = kFree,
                          .shared = kFree,
                          .memory = kFree},
                         +1},
                        {"dear", {.launch = 10}, -1}};
  Start({"--learn", "false"});
  client_ = Client::Connect(daemon_->address()).value();
  const std::map<std::string, int64_t> usual = LaunchesOf(judged, false);
  for (const Case& c : cases) {
    EXPECT_EQ(daemon_->Stop().exit_code, 0);
    Serve({"--store", dir_.path(c.store)});
    for (const std::string& name : reported) {
      for (const FusionMode fusion : {FusionMode::kFused, FusionMode::kOpByOp}) {
        const FusionReply planned = PlanModel(name, fusion);
        for (int i = 0; i < 20; ++i) Report(planned, TimesOn(c.device, planned));
      }
    }
    Train();
    // A fit may have been due by itself before, and what came after it may be rejected.
    ASSERT_TRUE(Eventually([&] {
      const std::vector<Epoch> epochs = client_->ListEpochs().value().epochs;
      return std::any_of(epochs.begin(), epochs.end(), [](const Epoch& epoch) {
        return epoch.state() == EpochState::kCanary || epoch.state() == EpochState::kActive;
      });
    })) << c.store;
    int moved = 0;
    for (const auto& [name, launches] : LaunchesOf(judged, true)) {
      const int64_t change = c.sign * (launches - usual.at(name));
      EXPECT_GE(change, 0) << c.store << ": " << name << ", " << usual.at(name) << " -> "
                           << launches;
      moved += change > 0 ? 1 : 0;
    }
    EXPECT_GE(moved, 2) << c.store << ": plans do not follow the device";
  }
}

TEST_F(LearningTest, APinnedPlanStays) {
  Serve();
  const FusionReply fused = Plan(16, FusionMode::kFused, PlanMode::kCompile);
  ASSERT_TRUE(AdminClient(*owner_).SetPinned({fused.plan_key}, true).ok());
  const FusionReply parts = Plan(16, FusionMode::kOpByOp, PlanMode::kCompile);
  for (int i = 0; i < 3; ++i) Report(parts, {10, 10, 10});
  for (int i = 0; i < 12; ++i) Report(fused, {90});
  EXPECT_THAT(client_->ListEpochs().value().decisions, IsEmpty());
}

TEST_F(LearningTest, AServerThatDoesNotLearnSaysSo) {
  Start({"--learn", "false"});
  client_ = Client::Connect(daemon_->address()).value();
  EXPECT_EQ(client_->ListEpochs().value(), EpochList());
  owner_ = Client::Connect(daemon_->local_address()).value();
  const absl::Status refused = AdminClient(*owner_).TrainEpochs("").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("--learn false"));
}

TEST_F(LearningTest, MalformedOrdersAreRefused) {
  Serve();
  for (const auto& [train, back] :
       {std::pair(false, int64_t{0}), {true, int64_t{1}}, {false, int64_t{-1}}}) {
    v1::SteerEpochsRequest request;
    request.set_train(train);
    request.set_roll_back(back);
    std::string answer;
    EXPECT_EQ(
        admin_
            ->CallBytes("/fusion.v1.FusionAdmin/SteerEpochs", request.SerializeAsString(), &answer)
            .error_code(),
        grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(AdminClient(*client_).TrainEpochs("").status().code(),
            absl::StatusCode::kPermissionDenied)
      << "the role admin";
}

}  // namespace
}  // namespace fusion
