// ReportLatencies of the real fusiond: many reports in one call, sent by clients of all kinds.
#include "client/report_stream.h"

#include <chrono>
#include <limits>
#include <thread>

#include "client/client.h"
#include "core/base/hash.h"
#include "core/device/host_isa.h"
#include "core/wire/report.h"
#include "core/wire/report_origin.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kIngested = "fusion_measurements_ingested_total";

class ReportStreamTest : public ServerTest {
 protected:
  void Serve(std::vector<std::string> args = {}, const std::string& token = {}) {
    Start(std::move(args));
    client_ = Connect(token);
  }
  std::unique_ptr<Client> Connect(const std::string& token) const {
    return Client::Connect(daemon_->address(), {.token = token}).value();
  }
  static FusionReply Plan(const Client& client) {
    FusionRequest request;
    request.onnx_model = LinearReluModel(8).Bytes();
    request.target.isa = HostIsaName();
    request.mode = PlanMode::kPlanOnly;
    absl::StatusOr<FusionReply> reply = client.PlanFusion(request);
    FUSION_CHECK(reply.ok(), Message(reply.status()));
    return *std::move(reply);
  }
  static v1::ReportLatencyRequest ReportOn(const FusionReply& reply, const std::string& id = {}) {
    v1::ReportLatencyRequest wire;
    EncodeLatencyReport({.plan_key = reply.plan_key,
                         .launches = {{.launch = 0, .samples_us = {12, 10}}},
                         .threads = reply.plan.threads,
                         .device = "a machine"},
                        &wire);
    wire.set_report_id(id);
    return wire;
  }
  double Ingested(const std::string& result) const {
    return Metric(StrCat(kIngested, "{result=\"", result, "\"}"));
  }
  // A call counts once its answer is sent, so a client may have it a moment before.
  void ExpectIngested(const std::string& result, double reports) const {
    EXPECT_TRUE(Eventually([&] { return Ingested(result) == reports; }))
        << result << ": " << Ingested(result);
  }
  int64_t Calls() const { return client_->GetReport().value().at(0).kernels.at(0).measured.calls; }

  std::unique_ptr<Client> client_;
};

TEST_F(ReportStreamTest, ThousandsOfReportsComeInOneCall) {
  Serve();
  const FusionReply planned = Plan(*client_);
  std::vector<v1::ReportLatencyRequest> reports;
  for (int i = 0; i < 5000; ++i) reports.push_back(ReportOn(planned, StrCat(i)));
  v1::ReportLatenciesResponse answer = SendReports(*client_, reports).value();
  EXPECT_EQ(answer.accepted_reports(), 5000);
  EXPECT_EQ(answer.accepted_samples(), 10'000);
  EXPECT_EQ(answer.duplicates(), 0);
  EXPECT_EQ(answer.refused_reports(), 0);
  EXPECT_EQ(Calls(), 10'000);
  answer = SendReports(*client_, reports).value();
  EXPECT_EQ(answer.accepted_reports(), 0);
  EXPECT_EQ(answer.accepted_samples(), 0);
  EXPECT_EQ(answer.duplicates(), 5000);
  EXPECT_EQ(Calls(), 10'000) << "sent again, counted once";
  ExpectIngested("ok", 5000);
  ExpectIngested("duplicate", 5000);
  EXPECT_TRUE(
      Eventually([&] { return Status()["calls"]["ReportLatencies"]["finished"]["OK"] == 2; }));
  EXPECT_TRUE(daemon_->WaitForOutput("\"method\":\"ReportLatencies\""));
}

TEST_F(ReportStreamTest, EachReportIsRefusedByItself) {
  Serve();
  const FusionReply planned = Plan(*client_);
  std::vector<v1::ReportLatencyRequest> reports(40, ReportOn(planned));
  reports[3].set_plan_key("short");
  reports[5].mutable_launches(0)->set_samples_us(1, std::numeric_limits<double>::quiet_NaN());
  reports[7].set_plan_key(std::string(BytesOf(Sha256("nobody's"))));
  reports[9].set_background_load(2);
  for (size_t i = 20; i < 40; ++i) reports[i].mutable_launches(0)->set_launch(77);
  const v1::ReportLatenciesResponse answer = SendReports(*client_, reports).value();
  EXPECT_EQ(answer.accepted_reports(), 16);
  EXPECT_EQ(answer.accepted_samples(), 32);
  EXPECT_EQ(answer.refused_reports(), 24);
  ASSERT_EQ(answer.refused_size(), 16) << "the first of them";
  struct Case {
    int index;
    StatusCode code;
    const char* says;
  };
  const Case cases[] = {
      {3, StatusCode::INVALID_ARGUMENT, "plan_key: "},
      {5, StatusCode::INVALID_ARGUMENT, "launches[0].samples_us[1]: nan"},
      {7, StatusCode::NOT_FOUND, "no plan "},
      {9, StatusCode::INVALID_ARGUMENT, "background_load: 2; expected 0..1"},
      {20, StatusCode::INVALID_ARGUMENT, "launches[0].launch: 77; the plan has launches 0.."}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(answer.refused(i).index(), cases[i].index);
    EXPECT_EQ(answer.refused(i).code(), cases[i].code);
    EXPECT_THAT(answer.refused(i).message(), HasSubstr(cases[i].says));
  }
  EXPECT_EQ(Calls(), 32);
  ExpectIngested("invalid", 23);
  ExpectIngested("unknown_plan", 1);
}

TEST_F(ReportStreamTest, ACallHasAMostAndALeast) {
  Serve();
  const FusionReply planned = Plan(*client_);
  auto send = [&](int count) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(60));
    v1::ReportLatenciesResponse response;
    auto writer = caller_->stub().ReportLatencies(&context, &response);
    const v1::ReportLatencyRequest report = ReportOn(planned);
    for (int i = 0; i < count && writer->Write(report); ++i) {
    }
    writer->WritesDone();
    return writer->Finish();
  };
  grpc::Status status = send(10'001);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("more than 10000 reports in one call"));
  EXPECT_EQ(Calls(), 20'000) << "those before are stored";
  status = send(0);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
  // The client library makes as many calls as it needs.
  std::vector<v1::ReportLatencyRequest> many(10'002, ReportOn(planned));
  many.back().set_threads(0);
  const v1::ReportLatenciesResponse answer = SendReports(*client_, many).value();
  EXPECT_EQ(answer.accepted_reports(), 10'001);
  ASSERT_EQ(answer.refused_size(), 1);
  EXPECT_EQ(answer.refused(0).index(), 10'001);
}

TEST_F(ReportStreamTest, ACallThatIsTakenBackKeepsWhatIsStored) {
  Serve();
  const FusionReply planned = Plan(*client_);
  grpc::ClientContext context;
  v1::ReportLatenciesResponse response;
  auto writer = caller_->stub().ReportLatencies(&context, &response);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer->Write(ReportOn(planned)));
  EXPECT_TRUE(Eventually([&] {
    const std::vector<PlanReport> reports = client_->GetReport().value();
    return !reports.empty() && reports[0].kernels.at(0).measured.calls == 6;
  }));
  context.TryCancel();
  EXPECT_EQ(writer->Finish().error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually(
      [&] { return Status()["calls"]["ReportLatencies"]["finished"]["CANCELLED"] == 1; }));
  EXPECT_EQ(Metric("fusion_inflight_streams"), 0);
  EXPECT_EQ(Calls(), 6);
  EXPECT_TRUE(client_
                  ->ReportLatency({.plan_key = planned.plan_key,
                                   .launches = {{.launch = 0, .samples_us = {5}}},
                                   .threads = planned.plan.threads})
                  .ok());
}

TEST_F(ReportStreamTest, ASlowSenderEndsWithItsDeadlineAndHoldsNoThread) {
  Serve({"--request-threads", "1"});
  const FusionReply planned = Plan(*client_);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<v1::ReportLatenciesResponse> responses(8);
  std::vector<std::unique_ptr<grpc::ClientWriter<v1::ReportLatencyRequest>>> writers;
  for (v1::ReportLatenciesResponse& response : responses) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    contexts.back()->set_deadline(std::chrono::system_clock::now() + seconds(3));
    writers.push_back(caller_->stub().ReportLatencies(contexts.back().get(), &response));
    EXPECT_TRUE(writers.back()->Write(ReportOn(planned)));
  }
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_streams") == 8; }));
  EXPECT_EQ(Calls(), 16) << "others are served by the one thread";
  for (auto& writer : writers) {
    EXPECT_EQ(writer->Finish().error_code(), StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_streams") == 0; }));
}

TEST_F(ReportStreamTest, ASenderWithoutADeadlineEndsWithTheServersLimit) {
  Serve({"--call-seconds", "1"});
  const FusionReply planned = Plan(*client_);
  grpc::ClientContext context;
  v1::ReportLatenciesResponse response;
  auto writer = caller_->stub().ReportLatencies(&context, &response);
  const auto begun = std::chrono::steady_clock::now();
  while (writer->Write(ReportOn(planned))) {
    std::this_thread::sleep_for(milliseconds(20));  // for ever, below the most reports
  }
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED) << status.error_message();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(30));
}

TEST_F(ReportStreamTest, TheRoleAndTheTenantAreThoseOfReportLatency) {
  auto token = [](const std::string& name, const std::string& more) {
    return StrCat("tokens { name: '", name, "' sha256: '", Sha256(name).ToHex(), "' ", more,
                  " }\n");
  };
  const std::string file =
      dir_.Write("tokens", StrCat(token("a", "tenant: 'a'"), token("b", "tenant: 'b'"),
                                  token("planner", "tenant: 'a' roles: 'plan'")));
  Serve({"--tokens", file, "--tenant-namespaces"}, "a");
  const FusionReply planned = Plan(*client_);
  const std::vector<v1::ReportLatencyRequest> reports = {ReportOn(planned, "same id")};
  EXPECT_EQ(SendReports(*client_, reports)->accepted_reports(), 1);
  const absl::Status refused = SendReports(*Connect("planner"), reports).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("role report"));
  const absl::Status unknown = SendReports(*Connect("nobody's"), reports).status();
  EXPECT_TRUE(absl::IsUnauthenticated(unknown)) << unknown;
  const v1::ReportLatenciesResponse other = SendReports(*Connect("b"), reports).value();
  EXPECT_EQ(other.accepted_reports(), 0);
  ASSERT_EQ(other.refused_size(), 1);
  EXPECT_EQ(other.refused(0).code(), StatusCode::NOT_FOUND) << "the plan of another tenant";
  EXPECT_EQ(SendReports(*client_, reports)->duplicates(), 1);
}

TEST_F(ReportStreamTest, ALargeReportIsRefusedAlone) {
  Serve({"--max-request-bytes", "20000"});
  const FusionReply planned = Plan(*client_);
  std::vector<v1::ReportLatencyRequest> reports(3, ReportOn(planned));
  reports[1].set_device(std::string(30'000, 'x'));
  const v1::ReportLatenciesResponse answer = SendReports(*client_, reports).value();
  EXPECT_EQ(answer.accepted_reports(), 2);
  ASSERT_EQ(answer.refused_size(), 1);
  EXPECT_EQ(answer.refused(0).code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(answer.refused(0).message(), HasSubstr("--max-request-bytes"));
}

TEST_F(ReportStreamTest, AReportFromASenderThatSaysHowItWasMeasured) {
  Serve();
  const FusionReply planned = Plan(*client_);
  const LatencyReport report{.plan_key = planned.plan_key,
                             .launches = {{.launch = 0, .samples_us = {12, 10}}},
                             .threads = planned.plan.threads};
  const ReportOrigin quiet{.id = "1", .clock_ghz = 3, .background_load = 0.1};
  EXPECT_EQ(client_->ReportLatency(report, CancelToken(), quiet).value(), 2);
  EXPECT_EQ(client_->ReportLatency(report, CancelToken(), quiet).value(), 0) << "sent again";
  EXPECT_EQ(client_->ReportLatency(report, CancelToken(), {.background_load = 0.9}).value(), 0);
  const LatencySummary measured = client_->GetReport().value().at(0).kernels.at(0).measured;
  EXPECT_EQ(measured.calls, 4);
  EXPECT_EQ(measured.samples, 2);
}

}  // namespace
}  // namespace fusion
