// PlanFusionStream of the real fusiond.
#include <future>
#include <map>

#include "client/client.h"
#include "core/device/host_isa.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

struct Streamed {
  grpc::Status status;
  std::vector<v1::PlanProgress> progress;
  std::vector<v1::PlanFusionResponse> responses;
};

class StreamTest : public ServerTest {
 protected:
  Streamed Stream(const v1::PlanFusionRequest& request) const {
    grpc::ClientContext context;
    return Read(&context, request);
  }
  Streamed Read(grpc::ClientContext* context, const v1::PlanFusionRequest& request) const {
    Streamed out;
    auto reader = caller_->stub().PlanFusionStream(context, request);
    v1::PlanFusionEvent event;
    while (reader->Read(&event)) {
      if (event.has_response()) {
        out.responses.push_back(event.response());
      } else {
        EXPECT_TRUE(event.has_progress());
        EXPECT_THAT(out.responses, SizeIs(0)) << "the response is the last message";
        out.progress.push_back(event.progress());
      }
    }
    out.status = reader->Finish();
    return out;
  }
  static void ExpectInOrder(const Streamed& streamed) {
    double elapsed = 0;
    std::map<std::string, int> done;
    for (const v1::PlanProgress& progress : streamed.progress) {
      EXPECT_GE(progress.elapsed_ms(), elapsed);
      elapsed = progress.elapsed_ms();
      EXPECT_LE(progress.done(), progress.total());
      EXPECT_GE(progress.done(), done[progress.stage()]) << progress.stage();
      done[progress.stage()] = progress.done();
    }
  }
};

TEST_F(StreamTest, ProgressComesInOrderAndEndsWithTheResponse) {
  StartGated();
  CloseGate();
  v1::PlanFusionRequest request = RequestFor(SentModel("bert_layer"));
  auto asked = std::async(std::launch::async, [&] { return Stream(request); });
  EXPECT_TRUE(Eventually([&] { return Status()["workers"]["running"] > 0; }));
  OpenGate();
  Streamed streamed = asked.get();
  ASSERT_TRUE(streamed.status.ok()) << streamed.status.error_message();
  ASSERT_THAT(streamed.responses, SizeIs(1));
  ExpectInOrder(streamed);
  std::vector<std::string> stages;
  for (const v1::PlanProgress& progress : streamed.progress) stages.push_back(progress.stage());
  for (const char* stage : {"import", "plan", "compile"}) EXPECT_THAT(stages, Contains(stage));
  const v1::PlanProgress& last = streamed.progress.back();
  EXPECT_EQ(last.stage(), "compile");
  EXPECT_EQ(last.total(), streamed.responses[0].plan().kernels_size());
  EXPECT_EQ(last.done(), last.total());
}

TEST_F(StreamTest, TheResponseIsThatOfPlanFusion) {
  Start();
  v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto());
  caller_->Plan(request);
  v1::PlanFusionResponse unary = caller_->Plan(request);
  Streamed streamed = Stream(request);
  ASSERT_THAT(streamed.responses, SizeIs(1));
  for (v1::PlanFusionResponse* response : {&unary, &streamed.responses[0]}) {
    for (v1::StageTime& stage : *response->mutable_stages()) stage.set_milliseconds(0);
  }
  EXPECT_EQ(streamed.responses[0].SerializeAsString(), unary.SerializeAsString());
  EXPECT_EQ(Metric("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"PlanFusionStream\","
                   "grpc_service=\"fusion.v1.FusionService\",grpc_type=\"server_stream\"}"),
            1);
}

TEST_F(StreamTest, OneThatSharesAFlightSeesItsProgressToo) {
  StartGated();
  CloseGate();
  v1::PlanFusionRequest request = RequestFor(SentModel("bert_layer"));
  std::vector<std::future<Streamed>> asked;
  for (int i = 0; i < 16; ++i) {
    asked.push_back(std::async(std::launch::async, [&] { return Stream(request); }));
  }
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_singleflight_waiters") == 16; }));
  OpenGate();
  for (auto& one : asked) {
    Streamed streamed = one.get();
    ASSERT_TRUE(streamed.status.ok()) << streamed.status.error_message();
    ASSERT_THAT(streamed.responses, SizeIs(1));
    ExpectInOrder(streamed);
    EXPECT_EQ(streamed.progress.back().done(), streamed.responses[0].plan().kernels_size());
  }
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") == 0; }));
}

TEST_F(StreamTest, CancelledMidWayItHoldsNothing) {
  StartGated();
  CloseGate();
  v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto());
  grpc::ClientContext context;
  auto asked = std::async(std::launch::async, [&] { return Read(&context, request); });
  ASSERT_TRUE(Eventually([&] { return Status()["workers"]["running"] > 0; }));
  context.TryCancel();
  EXPECT_EQ(asked.get().status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") == 0; }));
  EXPECT_TRUE(daemon_->WaitForOutput("\"code\":\"CANCELLED\""));
  OpenGate();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_cache_writes_total{result=\"ok\"}") == 1; }));
  EXPECT_EQ(Stream(request).responses.at(0).cache(), v1::CACHE_OUTCOME_HIT_MEMORY);
}

TEST_F(StreamTest, ACallerThatDoesNotReadHoldsNoThread) {
  Start({"--request-threads", "1"});
  v1::PlanFusionRequest request = RequestFor(SentModel("bert_layer"), v1::PLAN_MODE_PLAN_ONLY);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::PlanFusionEvent>>> readers;
  for (int i = 0; i < 8; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(caller_->stub().PlanFusionStream(contexts.back().get(), request));
  }
  EXPECT_EQ(caller_->Plan(request).plan().nodes(), caller_->Plan(request).plan().nodes());
  for (auto& context : contexts) context->TryCancel();
  for (auto& reader : readers) reader->Finish();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") == 0; }));
}

TEST_F(StreamTest, ErrorsAreThoseOfPlanFusion) {
  Start();
  v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto());
  request.clear_target();
  Streamed streamed = Stream(request);
  EXPECT_EQ(streamed.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(streamed.status.error_message(), HasSubstr("target: missing"));
  EXPECT_THAT(streamed.responses, SizeIs(0));
}

TEST_F(StreamTest, TheClientLibraryTellsItsObserver) {
  Start();
  std::unique_ptr<Client> client = Client::Connect(daemon_->address()).value();
  FusionRequest request;
  request.onnx_model = LinearReluModel().Bytes();
  request.target.isa = HostIsaName();
  std::vector<PlanProgress> seen;
  absl::StatusOr<FusionReply> reply =
      client->PlanFusion(request, [&](const PlanProgress& progress) { seen.push_back(progress); });
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().stage, "compile");
  EXPECT_EQ(seen.back().done, static_cast<int>(reply->plan.kernels.size()));
}

}  // namespace
}  // namespace fusion
