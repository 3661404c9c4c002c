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
  StartGated({"--abandoned-build-seconds", "-1"});  // also if the build has not begun by then
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

// Much to import, and little to plan.
v1::PlanFusionRequest LongToImport() {
  TestModel m;
  m.Input("t0", {8, 64});
  constexpr int kNodes = 50'000;
  for (int i = 0; i < kNodes; ++i) m.Node("Identity", {StrCat("t", i)}, {StrCat("t", i + 1)});
  m.Node("Relu", {StrCat("t", kNodes)}, {"y"}).Output("y");
  return RequestFor(m.proto(), v1::PLAN_MODE_PLAN_ONLY);
}

TEST_F(StreamTest, CancelledWhileItsModelIsImportedItHoldsNothing) {
  Start();
  const v1::PlanFusionRequest request = LongToImport();
  // True if the call ended before its import did.
  auto leave_in_import = [&] {
    grpc::ClientContext context;
    auto reader = caller_->stub().PlanFusionStream(&context, request);
    std::string stage;
    for (v1::PlanFusionEvent event; reader->Read(&event);) {
      if (event.has_response()) return false;
      stage = event.progress().stage();
      if (stage == "import") context.TryCancel();
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
    return stage == "import";
  };
  auto holds_nothing = [this] {
    return Metric("fusion_inflight_calls") == 0 && Metric("fusion_inflight_bytes") == 0 &&
           Metric("fusion_planning_bytes") == 0 && Metric("fusion_singleflight_waiters") == 0;
  };
  EXPECT_TRUE(leave_in_import());
  EXPECT_TRUE(Eventually(holds_nothing));
  EXPECT_TRUE(daemon_->WaitForOutput("\"code\":\"CANCELLED\""));
  EXPECT_EQ(Metric("grpc_server_handled_total{grpc_code=\"CANCELLED\",grpc_method="
                   "\"PlanFusionStream\",grpc_service=\"fusion.v1.FusionService\","
                   "grpc_type=\"server_stream\"}"),
            1)
      << "concluded, and counted so";
  // Somebody who wants the same meanwhile, and somebody who comes afterwards.
  auto beside = std::async(std::launch::async, [&] {
    return FusionCaller(daemon_->address()).Plan(request).plan_key();
  });
  leave_in_import();
  const std::string key = beside.get();
  EXPECT_FALSE(key.empty());
  EXPECT_EQ(Stream(request).responses.at(0).plan_key(), key);
  EXPECT_TRUE(Eventually(holds_nothing));
}

// Texts of this request are far more than what a stream may send before its caller reads.
v1::PlanFusionRequest TalkativeRequest() {
  TestModel m;
  m.Input("t0", {8, 64});
  constexpr int kNodes = 150;
  for (int i = 0; i < kNodes; ++i) {  // each a kernel of its own shape
    m.Node("Concat", {StrCat("t", i), "t0"}, {StrCat("t", i + 1)}).Attr("axis", int64_t{1});
  }
  m.Output(StrCat("t", kNodes));
  v1::PlanFusionRequest request = RequestFor(m.proto(), v1::PLAN_MODE_PLAN_ONLY);
  request.mutable_options()->set_fusion(v1::FUSION_MODE_OP_BY_OP);
  request.add_dumps(v1::DUMP_KIND_SOURCE);
  request.add_dumps(v1::DUMP_KIND_SCHEDULE);
  return request;
}

TEST_F(StreamTest, ACallerThatDoesNotReadHoldsNoThread) {
  constexpr int kWindowBytes = 1 << 16;
  constexpr int kUnread = 8;
  Start({"--request-threads", "1"});
  const v1::PlanFusionRequest request = TalkativeRequest();
  ASSERT_GT(caller_->Plan(request).ByteSizeLong(), 16u * kWindowBytes);
  // A connection whose windows do not grow.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  auto stub = v1::FusionService::NewStub(
      grpc::CreateCustomChannel(daemon_->address(), grpc::InsecureChannelCredentials(), arguments));
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::PlanFusionEvent>>> readers;
  for (int i = 0; i < kUnread; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(stub->PlanFusionStream(contexts.back().get(), request));
  }
  auto in_flight = [this] { return Metric("fusion_inflight_calls"); };
  ASSERT_TRUE(Eventually([&] { return in_flight() == kUnread; }));
  for (int i = 0; i < 2 * kUnread; ++i) {  // each waits for the one thread
    v1::PlanFusionResponse response;
    grpc::Status served = caller_->Plan(request, &response, std::chrono::minutes(1));
    ASSERT_TRUE(served.ok()) << served.error_message();
  }
  EXPECT_TRUE(Eventually([&] { return in_flight() <= kUnread; })) << "those served are over";
  EXPECT_EQ(in_flight(), kUnread) << "none of the unread has ended";
  v1::PlanFusionEvent event;
  bool answered = false;
  while (readers[0]->Read(&event)) answered = event.has_response();
  EXPECT_TRUE(readers[0]->Finish().ok());
  EXPECT_TRUE(answered);
  EXPECT_TRUE(Eventually([&] { return in_flight() == kUnread - 1; }));
  for (auto& context : contexts) context->TryCancel();
  for (int i = 1; i < kUnread; ++i) readers[static_cast<size_t>(i)]->Finish();
  EXPECT_TRUE(Eventually([&] { return in_flight() == 0; }));
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
