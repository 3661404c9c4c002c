// ReportLatency, GetReport, GetAccuracy, ListPlans and GetCapabilities of the real fusiond, through
// the client library and with bytes that no client of ours would send.
#include <signal.h>

#include <cmath>
#include <future>
#include <limits>
#include <set>

#include "client/client.h"
#include "core/base/kernel_abi.h"
#include "core/device/host_isa.h"
#include "core/op/op_def.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ReportTest : public ServerTest {
 protected:
  void Serve(std::vector<std::string> args = {}) {
    Start(std::move(args));
    client_ = Client::Connect(daemon_->address()).value();
  }
  void ServeWithStore() { Serve({"--store", dir_.path("store")}); }

  // Plans a chain of linear layers without compiling it.
  FusionReply Plan(int64_t width, FusionMode fusion = FusionMode::kFused) {
    FusionRequest request;
    request.onnx_model = LinearReluModel(width).Bytes();
    request.target.isa = HostIsaName();
    request.mode = PlanMode::kPlanOnly;
    request.options.fusion = fusion;
    absl::StatusOr<FusionReply> reply = client_->PlanFusion(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return *std::move(reply);
  }
  static LatencyReport ReportOn(const FusionReply& reply) {
    return {.plan_key = reply.plan_key,
            .kernels = LaunchedKernels(reply.plan),
            .launches = {{.launch = 0, .samples_us = {12, 10, 14}, .calls = 300}},
            .run_samples_us = {20},
            .threads = reply.plan.threads,
            .device = "a machine"};
  }
  std::vector<PlanReport> Reports() {
    absl::StatusOr<std::vector<PlanReport>> reports = client_->GetReport();
    EXPECT_TRUE(reports.ok()) << reports.status();
    return reports.ok() ? *std::move(reports) : std::vector<PlanReport>();
  }
  // The answer to a report that is sound but for what `spoil` does to it.
  grpc::Status Send(const FusionReply& reply,
                    const std::function<void(v1::ReportLatencyRequest*)>& spoil) {
    v1::ReportLatencyRequest request;
    request.set_plan_key(std::string(BytesOf(reply.plan_key)));
    request.set_threads(1);
    request.add_launches()->add_samples_us(1);
    spoil(&request);
    grpc::ClientContext context;
    v1::ReportLatencyResponse response;
    return caller_->stub().ReportLatency(&context, request, &response);
  }
  std::unique_ptr<Client> client_;
};

TEST_F(ReportTest, WhatIsReportedIsShownBesideTheEstimate) {
  Serve();
  FusionReply planned = Plan(8);
  EXPECT_THAT(Reports(), IsEmpty());
  EXPECT_EQ(client_->ReportLatency(ReportOn(planned)).value(), 4);
  std::vector<PlanReport> reports = Reports();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].plan_key, planned.plan_key);
  EXPECT_THAT(reports[0].devices, ElementsAre("a machine"));
  EXPECT_EQ(reports[0].runs.calls, 1);
  ASSERT_THAT(reports[0].kernels, SizeIs(1));
  const KernelReport& kernel = reports[0].kernels[0];
  auto launched = static_cast<size_t>(planned.plan.launches[0].kernel);
  EXPECT_EQ(kernel.kernel_key, planned.plan.kernels[launched].key);
  EXPECT_EQ(kernel.label, "MatMul+Add+Relu");
  EXPECT_EQ(kernel.nodes, 3);
  EXPECT_EQ(kernel.measured.calls, 300);
  EXPECT_EQ(kernel.measured.samples, 3);
  EXPECT_EQ(kernel.measured.median_us, 12);
  EXPECT_EQ(kernel.estimated_us, planned.plan.totals.estimated_us);
  EXPECT_EQ(kernel.op_by_op_us, planned.plan.op_by_op.estimated_us);
  EXPECT_GT(kernel.op_by_op_us, kernel.estimated_us);
  EXPECT_EQ(kernel.activation_bytes, planned.plan.totals.activation_bytes);
  EXPECT_EQ(kernel.op_by_op_activation_bytes, planned.plan.op_by_op.activation_bytes);
  EXPECT_THAT(client_->GetReport(planned.plan_key).value(), SizeIs(1));
  EXPECT_TRUE(absl::IsNotFound(client_->GetReport(Sha256("nobody's")).status()));
  EXPECT_EQ(Metric("fusion_measurements_ingested_total{result=\"ok\"}"), 1);
  EXPECT_EQ(Metric("fusion_measurements_plans"), 1);
  EXPECT_EQ(Status()["calls"]["ReportLatency"]["finished"]["OK"], 1);
  EXPECT_EQ(Status()["measurements"]["plans"], 1);
  for (const char* method : {"ReportLatency", "GetReport"}) {
    EXPECT_TRUE(daemon_->WaitForOutput(StrCat("\"method\":\"", method, "\",\"request_id\":\"\",",
                                              "\"plan\":\"", planned.plan_key.ToHex())))
        << method << ": the log says of which plan";
  }
}

TEST_F(ReportTest, RunsOfOtherThreadsAreCountedOnly) {
  Serve();
  FusionReply planned = Plan(8);
  EXPECT_EQ(client_->ReportLatency(ReportOn(planned)).value(), 4);
  LatencyReport other = ReportOn(planned);
  other.threads = planned.plan.threads + 7;
  EXPECT_EQ(client_->ReportLatency(other).value(), 0);
  LatencySummary measured = Reports().at(0).kernels.at(0).measured;
  EXPECT_EQ(measured.calls, 600);
  EXPECT_EQ(measured.samples, 3);
}

TEST_F(ReportTest, ReportsSurviveARestartAndAKill) {
  ServeWithStore();
  FusionReply planned = Plan(8);
  EXPECT_TRUE(client_->ReportLatency(ReportOn(planned)).ok());
  EXPECT_EQ(daemon_->Stop().exit_code, 0);
  ServeWithStore();
  EXPECT_EQ(Reports().at(0).kernels.at(0).measured.calls, 300);
  EXPECT_TRUE(client_->ReportLatency(ReportOn(planned)).ok());
  daemon_->Send(SIGKILL);
  daemon_->Wait();
  ServeWithStore();
  LatencySummary measured = Reports().at(0).kernels.at(0).measured;
  EXPECT_EQ(measured.calls, 600);
  EXPECT_EQ(measured.samples, 6);
}

TEST_F(ReportTest, ABadReportSaysWhatIsWrongAndLeavesNothing) {
  Serve();
  FusionReply planned = Plan(8);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Case {
    std::function<void(v1::ReportLatencyRequest*)> spoil;
    const char* message;
  };
  auto sample = [](double us) {
    return [us](v1::ReportLatencyRequest* r) { r->mutable_launches(0)->add_samples_us(us); };
  };
  const std::vector<Case> cases = {
      {sample(kNan), "launches[0].samples_us[1]: nan; expected microseconds"},
      {sample(kInfinity), "launches[0].samples_us[1]: inf"},
      {sample(0), "launches[0].samples_us[1]: 0; expected microseconds, more than 0"},
      {sample(-1), "launches[0].samples_us[1]: -1"},
      {sample(2e9), "at most 1e"},
      {[](auto* r) { r->mutable_launches(0)->clear_samples_us(); },
       "launches[0].samples_us: none; expected at least one"},
      {[](auto* r) { r->mutable_launches(0)->mutable_samples_us()->Resize(1025, 1); },
       "launches[0].samples_us: 1025 entries; expected at most 1024"},
      {[](auto* r) { r->mutable_launches(0)->set_calls(-1); }, "launches[0].calls: -1"},
      {[](auto* r) { r->mutable_launches(0)->set_calls(INT64_MAX); }, "launches[0].calls: 92"},
      {[](auto* r) { r->mutable_launches(0)->set_launch(1); },
       "launches[0].launch: 1; the plan has launches 0..0"},
      {[](auto* r) { r->mutable_launches(0)->set_launch(-1); }, "launches[0].launch: -1"},
      {[](auto* r) { *r->add_launches() = r->launches(0); },
       "launches[1].launch: 0 for the second time"},
      {[](auto* r) { r->add_run_samples_us(-3); }, "run_samples_us[0]: -3"},
      {[](auto* r) { r->set_runs(-3); }, "runs: -3"},
      {[](auto* r) { r->set_threads(0); }, "threads: 0; expected 1..4096"},
      {[](auto* r) { r->set_threads(5000); }, "threads: 5000"},
      {[](auto* r) { r->set_plan_key("abc"); }, "plan_key"},
      {[](auto* r) { r->set_kernels_sha256("abc"); }, "kernels_sha256"},
      {[](auto* r) { r->clear_launches(); }, "expected at least one measurement"},
  };
  for (const Case& bad : cases) {
    grpc::Status status = Send(planned, bad.spoil);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad.message;
    EXPECT_THAT(status.error_message(), HasSubstr(bad.message));
  }
  grpc::Status unknown = Send(planned, [](auto* r) { r->set_plan_key(std::string(32, 'x')); });
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(unknown.error_message(), HasSubstr("PlanFusion makes it again"));
  EXPECT_THAT(Reports(), IsEmpty());
  EXPECT_EQ(Metric("fusion_measurements_ingested_total{result=\"invalid\"}"),
            static_cast<double>(cases.size()));
  EXPECT_EQ(Metric("fusion_measurements_ingested_total{result=\"unknown_plan\"}"), 1);
  EXPECT_TRUE(Send(planned, [](auto*) {}).ok());
}

// What fields that nobody knows cost is GuardTest's.
TEST_F(ReportTest, HostileBytesAreRefused) {
  Serve();
  std::string empty_launches;
  for (int i = 0; i < 600'000; ++i) empty_launches += std::string("\x12\x00", 2);
  std::string answer;
  for (const char* method :
       {"ReportLatency", "GetReport", "GetAccuracy", "ListPlans", "GetCapabilities"}) {
    std::string path = StrCat("/fusion.v1.FusionService/", method);
    EXPECT_EQ(caller_->CallBytes(path, "\xff\xff\xff", &answer).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << method;
  }
  grpc::Status many =
      caller_->CallBytes("/fusion.v1.FusionService/ReportLatency", empty_launches, &answer);
  EXPECT_EQ(many.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::ReportLatencyResponse response;
  v1::ReportLatencyRequest request;
  request.mutable_launches()->Reserve(1);
  request.add_launches()->mutable_samples_us()->Resize(100'000, 1);
  EXPECT_EQ(caller_->stub().ReportLatency(&context, request, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED)
      << "compressed";
}

TEST_F(ReportTest, TheAccuracyIsThatOfWhatWasReported) {
  ServeWithStore();
  EXPECT_THAT(client_->GetAccuracy().value(), IsEmpty());
  // Ten kernels of one device, all three times as slow as estimated.
  for (int64_t width = 8; width <= 80; width += 8) {
    FusionReply planned = Plan(width);
    LatencyReport report = ReportOn(planned);
    const auto group = static_cast<size_t>(planned.plan.launches[0].group);
    const double us = planned.plan.groups[group].estimate.time_us * 3;
    report.launches = {{.launch = 0, .samples_us = std::vector<double>(6, us), .calls = 6}};
    EXPECT_EQ(client_->ReportLatency(report).value(), 7);
  }
  for (bool restarted : {false, true}) {
    std::vector<DeviceAccuracy> devices = client_->GetAccuracy().value();
    ASSERT_THAT(devices, SizeIs(1));
    EXPECT_EQ(devices[0].device.isa, HostIsaName());
    EXPECT_EQ(devices[0].kernels, 10);
    EXPECT_NEAR(devices[0].spec.median, std::log(3), 1e-3);
    ASSERT_THAT(devices[0].machines, SizeIs(1));
    EXPECT_EQ(devices[0].machines[0].machine, "a machine");
    EXPECT_EQ(devices[0].machines[0].tenant, "default");
    if (restarted) break;
    EXPECT_EQ(Metric("fusion_timings_kernels"), 10);
    EXPECT_EQ(Status()["timings"]["kernels"], 10);
    daemon_ = nullptr;
    ServeWithStore();
  }
}

TEST_F(ReportTest, OfReportsOfEightClientsNoneIsLost) {
  ServeWithStore();
  FusionReply planned = Plan(8);
  constexpr int kClients = 8;
  constexpr int kReports = 50;
  std::vector<std::future<void>> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.push_back(std::async(std::launch::async, [&] {
      std::unique_ptr<Client> client = Client::Connect(daemon_->address()).value();
      for (int i = 0; i < kReports; ++i) {
        absl::Status sent = client->ReportLatency(ReportOn(planned)).status();
        EXPECT_TRUE(sent.ok()) << sent;
      }
    }));
  }
  for (auto& client : clients) client.get();
  PlanReport report = Reports().at(0);
  EXPECT_EQ(report.kernels.at(0).measured.calls, 300 * kClients * kReports);
  EXPECT_EQ(report.runs.calls, kClients * kReports);
  EXPECT_EQ(report.kernels.at(0).measured.samples, 256);
}

TEST_F(ReportTest, PlansAreListedPageByPageAlsoAfterARestart) {
  ServeWithStore();
  std::set<Digest> keys;
  for (int64_t width = 1; width <= 7; ++width) keys.insert(Plan(4 * width).plan_key);
  ASSERT_THAT(keys, SizeIs(7));
  auto check = [&] {
    std::vector<PlanSummary> all = client_->ListPlans().value();
    ASSERT_THAT(all, SizeIs(7));
    std::set<Digest> listed;
    for (const PlanSummary& plan : all) listed.insert(plan.plan_key);
    EXPECT_EQ(listed, keys);
    for (size_t i = 1; i < all.size(); ++i) {
      EXPECT_GE(all[i - 1].created_unix_ms, all[i].created_unix_ms) << "newest first";
    }
    EXPECT_EQ(all[0].nodes, 3);
    EXPECT_EQ(all[0].distinct_kernels, 2) << "one packs the weight";
    EXPECT_EQ(all[0].compiled_kernels, 0);
    EXPECT_GT(all[0].bytes, 100);
    EXPECT_GT(all[0].op_by_op.estimated_us, all[0].totals.estimated_us);
    EXPECT_THAT(client_->ListPlans(3).value(), SizeIs(3));
    v1::ListPlansRequest request;
    request.set_page_size(2);
    std::vector<std::string> paged;
    int pages = 0;
    do {
      grpc::ClientContext context;
      v1::ListPlansResponse response;
      ASSERT_TRUE(caller_->stub().ListPlans(&context, request, &response).ok());
      for (const v1::PlanSummary& plan : response.plans()) paged.push_back(plan.plan_key());
      request.set_page_token(response.next_page_token());
      ++pages;
    } while (!request.page_token().empty());
    EXPECT_EQ(pages, 4);
    ASSERT_THAT(paged, SizeIs(7));
    for (size_t i = 0; i < paged.size(); ++i) EXPECT_EQ(paged[i], BytesOf(all[i].plan_key));
  };
  check();
  EXPECT_EQ(daemon_->Stop().exit_code, 0);
  ServeWithStore();
  check();
}

TEST_F(ReportTest, ListsOfAServerWithoutAStoreAndBadPages) {
  Serve();
  EXPECT_THAT(client_->ListPlans().value(), IsEmpty());
  FusionReply planned = Plan(8);
  EXPECT_EQ(client_->ListPlans().value().at(0).plan_key, planned.plan_key);
  auto list = [&](int size, const std::string& token) {
    grpc::ClientContext context;
    v1::ListPlansRequest request;
    v1::ListPlansResponse response;
    request.set_page_size(size);
    request.set_page_token(token);
    return caller_->stub().ListPlans(&context, request, &response);
  };
  EXPECT_THAT(list(0, "next").error_message(), HasSubstr("page_token: \"next\"; expected"));
  EXPECT_EQ(list(0, std::string(80, 'g')).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(list(-1, "").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(list(1001, "").error_message(), HasSubstr("page_size: 1001; expected 1..1000"));
  EXPECT_TRUE(list(1000, "").ok());
}

TEST_F(ReportTest, CompiledKernelsAreCountedInTheList) {
  Serve();
  caller_->Plan(RequestFor(LinearReluModel().proto()));
  PlanSummary plan = client_->ListPlans().value().at(0);
  EXPECT_EQ(plan.compiled_kernels, plan.distinct_kernels);
  EXPECT_GT(plan.compiled_kernels, 0);
}

TEST_F(ReportTest, CapabilitiesSayWhatTheServerCanDo) {
  ServeWithStore();
  absl::StatusOr<Capabilities> can = client_->GetCapabilities();
  ASSERT_TRUE(can.ok()) << can.status();
  EXPECT_EQ(can->version, "0.1.0");
  EXPECT_EQ(can->plan_version, 2u);
  EXPECT_EQ(can->kernel_abi_version, static_cast<uint32_t>(FUSION_KERNEL_ABI_VERSION));
  EXPECT_THAT(can->compiler, HasSubstr("g++"));
  EXPECT_GE(can->workers, 1);
  EXPECT_TRUE(can->durable_store);
  std::map<std::string, DeviceCapability> devices;
  for (const DeviceCapability& device : can->devices) devices[device.name] = device;
  ASSERT_TRUE(devices.contains("generic-avx2"));
  EXPECT_EQ(devices["generic-avx2"].backend, "cpu");
  EXPECT_EQ(devices["generic-avx2"].isa, "avx2");
  std::map<std::string, OpCapability> ops;
  for (const OpCapability& op : can->ops) ops[op.name] = op;
  ASSERT_TRUE(ops.contains("Softmax"));
  EXPECT_EQ(ops["Softmax"].max_opset, FindOp("Softmax")->max_opset);
  std::map<std::string, ServiceLimit> limits;
  for (const ServiceLimit& limit : can->limits) {
    EXPECT_FALSE(limits.contains(limit.name)) << limit.name;
    EXPECT_FALSE(limit.unit.empty()) << limit.name;
    limits[limit.name] = limit;
  }
  EXPECT_EQ(limits["request bytes"].value, 32 << 20);
  EXPECT_EQ(limits["request bytes"].option, "--max-request-bytes");
  EXPECT_EQ(limits["nodes of a graph"].value, 65536);
  caller_->Plan(RequestFor(LinearReluModel().proto()));  // a worker has started
  EXPECT_THAT(client_->GetCapabilities()->sandbox, testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace fusion
