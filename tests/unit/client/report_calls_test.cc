// The calls about plans that were made, against a service in this process that says what a test
// wants.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>

#include "client/client.h"
#include "core/wire/report.h"
#include "core/wire/scalars.h"
#include "fusion/v1/fusion_service.grpc.pb.h"
#include "tests/support/scratch_dir.h"

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
    int at = request->page_token().empty() ? 0 : std::stoi(request->page_token());
    int end = stuck ? at : std::min(plans, at + request->page_size());
    for (; at < end; ++at) {
      EncodePlanSummary({.plan_key = Sha256(StrCat(at)), .nodes = at}, response->add_plans());
    }
    if (at < plans) response->set_next_page_token(StrCat(at));
    return grpc::Status::OK;
  }
};

class ReportCallsTest : public testing::Test {
 protected:
  std::unique_ptr<Client> Connect() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
    return Client::Connect(address_).value();
  }
  static FusionRequest Request() {
    FusionRequest request;
    request.onnx_model = "model";
    request.target.isa = "avx2";
    return request;
  }

  ScratchDir dir_;
  std::string address_ = StrCat("unix:", dir_.path("socket"));
  FakeService service_;
  std::unique_ptr<grpc::Server> server_;
};

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
