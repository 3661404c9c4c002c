// The calls about plans that were made, against a service in this process that says what a test
// wants.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "client/client.h"
#include "client/report_stream.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/report.h"
#include "fusion/v1/fusion_service.grpc.pb.h"
#include "tests/support/served_client.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class FakeService : public v1::FusionService::Service {
 public:
  std::function<void(grpc::ServerWriter<v1::PlanFusionEvent>*)> stream;
  grpc::Status report = grpc::Status::OK;
  int plans = 0;  // that there are to list
  bool stuck = false;
  std::vector<std::string> tokens;  // not none: of empty pages, over and over
  std::chrono::milliseconds page_takes{0};
  bool malformed = false;
  std::vector<int> page_sizes;
  std::atomic<int> reports{0};
  v1::ReportLatencyRequest last;

  grpc::Status PlanFusionStream(grpc::ServerContext*, const v1::PlanFusionRequest*,
                                grpc::ServerWriter<v1::PlanFusionEvent>* writer) override {
    stream(writer);
    return grpc::Status::OK;
  }
  grpc::Status ReportLatency(grpc::ServerContext*, const v1::ReportLatencyRequest* request,
                             v1::ReportLatencyResponse* response) override {
    ++reports;
    last = *request;
    response->set_accepted_samples(2);
    return report;
  }
  grpc::Status GetReport(grpc::ServerContext*, const v1::GetReportRequest* request,
                         v1::GetReportResponse* response) override {
    v1::PlanReport* plan = response->add_plans();
    EncodePlanReport({.plan_key = Sha256("plan"), .threads = request->limit()}, plan);
    if (malformed) plan->set_plan_key("short");
    return grpc::Status::OK;
  }
  // Tokens are the number of the next plan.
  grpc::Status ListPlans(grpc::ServerContext*, const v1::ListPlansRequest* request,
                         v1::ListPlansResponse* response) override {
    page_sizes.push_back(request->page_size());
    std::this_thread::sleep_for(page_takes);
    if (!tokens.empty()) {
      response->set_next_page_token(tokens[(page_sizes.size() - 1) % tokens.size()]);
      return grpc::Status::OK;
    }
    int at = request->page_token().empty() ? 0 : std::stoi(request->page_token());
    int end = stuck ? at : std::min(plans, at + request->page_size());
    for (; at < end; ++at) {
      EncodePlanSummary({.plan_key = Sha256(StrCat(at)), .nodes = at}, response->add_plans());
    }
    if (at < plans) response->set_next_page_token(StrCat(at));
    return grpc::Status::OK;
  }
};

class ReportCallsTest : public ServedClientTest {
 protected:
  std::unique_ptr<Client> Connect(const ClientOptions& options = {}) {
    return ConnectTo(service_, options);
  }
  std::unique_ptr<Client> ConnectTo(grpc::Service& service, const ClientOptions& options = {}) {
    Serve(&service);
    return ServedClientTest::Connect(options);
  }

  FakeService service_;
};

TEST_F(ReportCallsTest, AServiceThatTakesNoStreamsSaysSo) {
  const absl::Status status = SendReports(*Connect(), {v1::ReportLatencyRequest()}).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("takes no streams of reports"));
}

TEST_F(ReportCallsTest, HowAReportCameToBeIsSentWithIt) {
  const ReportOrigin origin{.id = "an id", .clock_ghz = 2.5, .background_load = 0.125};
  const LatencyReport report{.plan_key = Sha256("plan"), .run_samples_us = {5}, .threads = 1};
  ASSERT_TRUE(Connect()->ReportLatency(report, CancelToken(), origin).ok());
  EXPECT_EQ(service_.last.report_id(), "an id");
  EXPECT_EQ(service_.last.clock_ghz(), 2.5);
  EXPECT_EQ(service_.last.background_load(), 0.125);
  EXPECT_EQ(service_.last.run_samples_us(0), 5);
}

TEST_F(ReportCallsTest, AReportIsSentOnceWhateverTheAnswer) {
  std::unique_ptr<Client> client = Connect();
  LatencyReport report{.plan_key = Sha256("plan"),
                       .launches = {{.launch = 1, .samples_us = {2.5, 3.5}, .calls = 9}}};
  EXPECT_EQ(client->ReportLatency(report).value(), 2);
  EXPECT_EQ(service_.last.launches(0).calls(), 9);
  EXPECT_EQ(service_.last.kernels_sha256(), "") << "not given";
  service_.report = grpc::Status(grpc::StatusCode::UNAVAILABLE, "stored, perhaps");
  EXPECT_TRUE(absl::IsUnavailable(client->ReportLatency(report).status()));
  EXPECT_EQ(service_.reports, 2) << "trying again might count it twice";
}

TEST_F(ReportCallsTest, ListsArePagedThroughAsFarAsWanted) {
  service_.plans = 2500;
  std::unique_ptr<Client> client = Connect();
  std::vector<PlanSummary> plans = client->ListPlans().value();
  ASSERT_THAT(plans, SizeIs(2500));
  for (size_t i = 0; i < plans.size(); ++i) ASSERT_EQ(plans[i].nodes, static_cast<int>(i));
  EXPECT_THAT(service_.page_sizes, ElementsAre(1000, 1000, 1000));
  service_.page_sizes.clear();
  EXPECT_THAT(client->ListPlans(1200).value(), SizeIs(1200));
  EXPECT_THAT(service_.page_sizes, ElementsAre(1000, 200));
  EXPECT_THAT(client->ListPlans(0).value(), SizeIs(0));
}

TEST_F(ReportCallsTest, AListThatDoesNotEndIsNotFollowed) {
  service_.plans = 5;
  service_.stuck = true;
  EXPECT_TRUE(absl::IsDataLoss(Connect()->ListPlans().status()));
}

TEST_F(ReportCallsTest, PagesThatComeAgainAreNotFollowed) {
  service_.tokens = {"A", "B"};
  absl::Status status = Connect()->ListPlans().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(service_.page_sizes, SizeIs(3)) << "A, B and A again";
}

TEST_F(ReportCallsTest, AllPagesTogetherHaveOneDeadline) {
  for (int i = 0; i < 100; ++i) service_.tokens.push_back(StrCat(i));
  service_.page_takes = std::chrono::milliseconds(50);
  absl::Status status = Connect({.deadline = std::chrono::milliseconds(400)})->ListPlans().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

// All that a service of an older version knows.
class OlderService : public v1::FusionService::Service {
 public:
  static constexpr std::chrono::seconds kStreamTakes{1};
  std::chrono::system_clock::time_point streamed_until;
  std::chrono::system_clock::time_point planned_until;
  grpc::Status PlanFusionStream(grpc::ServerContext* context, const v1::PlanFusionRequest*,
                                grpc::ServerWriter<v1::PlanFusionEvent>*) override {
    streamed_until = context->deadline();
    std::this_thread::sleep_for(kStreamTakes);
    return {grpc::StatusCode::UNIMPLEMENTED, ""};
  }
  grpc::Status PlanFusion(grpc::ServerContext* context, const v1::PlanFusionRequest*,
                          v1::PlanFusionResponse*) override {
    planned_until = context->deadline();
    return {grpc::StatusCode::INVALID_ARGUMENT, "its own words"};
  }
};

TEST_F(ReportCallsTest, AnOlderServiceTakesNoReports) {
  OlderService older;
  std::unique_ptr<Client> client = ConnectTo(older);
  LatencyReport report{.plan_key = Sha256("plan"), .run_samples_us = {1}};
  for (const absl::Status& status : {client->ReportLatency(report).status(),
                                     client->ReportLatency(report, CancelToken()).status()}) {
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("takes no latency reports"));
  }
  EXPECT_TRUE(absl::IsUnavailable(client->ListPlans().status())) << "it is asked for something";
  server_ = nullptr;
}

TEST_F(ReportCallsTest, AnOlderServiceIsAskedPlainlyWithinTheSameTime) {
  OlderService older;
  std::unique_ptr<Client> client = ConnectTo(older, {.deadline = std::chrono::seconds(8)});
  absl::Status status = client->PlanFusion(Request(), [](const PlanProgress&) {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_LT(older.planned_until, older.streamed_until + OlderService::kStreamTakes / 2.0);
  server_ = nullptr;
}

TEST_F(ReportCallsTest, ReportsArriveAndMalformedOnesAreRefused) {
  std::unique_ptr<Client> client = Connect();
  EXPECT_EQ(client->GetReport(std::nullopt, 7)->at(0).threads, 7);
  service_.malformed = true;
  absl::Status status = client->GetReport().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("malformed answer from"));
}

TEST_F(ReportCallsTest, AStreamWithoutAResponseIsMalformed) {
  service_.stream = [](grpc::ServerWriter<v1::PlanFusionEvent>* writer) {
    v1::PlanFusionEvent event;
    event.mutable_progress()->set_stage("plan");
    writer->Write(event);
  };
  std::vector<std::string> stages;
  absl::Status status =
      Connect()
          ->PlanFusion(Request(),
                       [&](const PlanProgress& progress) { stages.push_back(progress.stage); })
          .status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(stages, ElementsAre("plan"));
}

}  // namespace
}  // namespace fusion
