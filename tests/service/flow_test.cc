// How requests share a server: equal work once, what nobody wants ended, tenants and priorities,
// answers given again. The real fusiond over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "fusion/v1/fusion_admin.pb.h"
#include "tests/models/models.h"
#include "tests/models/onnx_builder.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class FlowTest : public ServerTest {
 protected:
  // A graph of `name`d nodes whose first kernels are those of every other one, and whose last is
  // its own: rows of another length.
  static v1::PlanFusionRequest SharingKernels(int64_t own) {
    OnnxBuilder b("sharing", /*seed=*/1);
    std::string x = b.Input("x", DType::kF32, {{8}, {64}});
    b.Output(b.Op("Softmax", {b.Op("MatMul", {x, b.Weight("w", {64, 64})})}), DType::kF32,
             {{8}, {64}});
    std::string y = b.Input("y", DType::kF32, {{own}, {32}});
    b.Output(b.Op("Softmax", {b.Op("Tanh", {y})}), DType::kF32, {{own}, {32}});
    return RequestFor(SentForm(std::move(b).Finish()));
  }
  // An entry of --tokens: the token is the tenant's name.
  static std::string TokenOf(const std::string& tenant) {
    return StrCat("tokens { name: '", tenant, "' tenant: '", tenant, "' sha256: '",
                  Sha256(tenant).ToHex(), "' }\n");
  }
  static onnx::ModelProto SentForm(onnx::ModelProto model) {
    for (onnx::TensorProto& weight : *model.mutable_graph()->mutable_initializer()) {
      weight.clear_raw_data();
      weight.set_data_location(onnx::TensorProto::EXTERNAL);
      onnx::StringStringEntryProto* entry = weight.add_external_data();
      entry->set_key("location");
      entry->set_value("weights");
    }
    return model;
  }

  int64_t Compiled() const { return Status()["workers"]["done"].get<int64_t>(); }

  // All of `requests` at once, each from a client with a connection of its own.
  std::vector<v1::PlanFusionResponse> PlanAtOnce(
      const std::vector<v1::PlanFusionRequest>& requests) {
    std::vector<v1::PlanFusionResponse> responses(requests.size());
    std::vector<std::thread> clients;
    for (size_t i = 0; i < requests.size(); ++i) {
      clients.emplace_back([&, i] {
        FusionCaller caller(daemon_->address());
        responses[i] = caller.Plan(requests[i]);
      });
    }
    for (std::thread& client : clients) client.join();
    return responses;
  }
};

TEST_F(FlowTest, SixtyFourClientsWithOneColdGraphCompileItsKernelsOnce) {
  Start({"--workers", "2"});
  const std::vector<v1::PlanFusionRequest> requests(64, RequestFor(SentModel("bert_layer")));
  const std::vector<v1::PlanFusionResponse> responses = PlanAtOnce(requests);
  std::set<std::string> keys;
  for (const v1::PlanFusionResponse& response : responses) {
    EXPECT_EQ(response.plan_key(), responses[0].plan_key());
    for (const std::string& key : KeysOf(response)) keys.insert(key);
  }
  EXPECT_EQ(Compiled(), static_cast<int64_t>(keys.size())) << "each distinct kernel, exactly once";
}

TEST_F(FlowTest, SixtyFourGraphsThatShareKernelsCompileNoneTwice) {
  Start({"--workers", "2"});
  std::vector<v1::PlanFusionRequest> requests;
  for (int64_t i = 0; i < 64; ++i) requests.push_back(SharingKernels(1 + i));
  const std::vector<v1::PlanFusionResponse> responses = PlanAtOnce(requests);
  std::set<std::string> plans;
  std::set<std::string> keys;
  size_t named = 0;
  for (const v1::PlanFusionResponse& response : responses) {
    plans.insert(response.plan_key());
    for (const std::string& key : KeysOf(response)) keys.insert(key);
    named += KeysOf(response).size();
  }
  EXPECT_EQ(plans.size(), 64u);
  EXPECT_LT(keys.size(), named - 32) << "they do share";
  EXPECT_EQ(Compiled(), static_cast<int64_t>(keys.size()));
}

TEST_F(FlowTest, WhatNobodyWaitsForAnyMoreIsCancelledAndMadeWhenItIsAskedForAgain) {
  StartGated({"--abandoned-build-seconds", "0.2"});
  CloseGate();
  v1::PlanFusionResponse response;
  const v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto());
  EXPECT_EQ(caller_->Plan(request, &response, milliseconds(700)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_builds_abandoned_total") == 1; }));
  EXPECT_TRUE(Eventually([&] { return Status()["workers"]["cancelled"].get<int64_t>() >= 1; }))
      << "its kernel is cancelled, though its compiler waits";
  EXPECT_TRUE(Eventually([&] { return Status()["workers"]["running"].get<int64_t>() == 0; }));
  OpenGate();
  EXPECT_EQ(caller_->Plan(request).kernels(0).state(), v1::KERNEL_STATE_READY);
}

TEST_F(FlowTest, WhatNobodyWaitsForGoesOnForAsLongAsTheServerIsTold) {
  StartGated({"--abandoned-build-seconds", "3600"});
  CloseGate();
  const v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  auto leaves = std::async(std::launch::async, [&] {
    v1::PlanFusionResponse nothing;
    return caller_->stub().PlanFusion(&context, request, &nothing);
  });
  EXPECT_TRUE(Eventually([&] {
    return Status()["workers"]["running"].get<int64_t>() > 0 &&
           Status()["flights"]["waiting"].get<int64_t>() > 0;
  }));
  std::this_thread::sleep_for(milliseconds(1000));  // until it has begun
  context.TryCancel();
  EXPECT_EQ(leaves.get().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") == 0; }));
  std::this_thread::sleep_for(
      milliseconds(1000));  // as long as one that were given up takes to end
  EXPECT_GT(Status()["workers"]["running"].get<int64_t>(), 0);
  OpenGate();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_cache_writes_total{result=\"ok\"}") == 1; }));
  EXPECT_EQ(Metric("fusion_builds_abandoned_total"), 0);
}

TEST_F(FlowTest, ACancelledWaiterNeverKillsABuildThatAnotherWaitsFor) {
  StartGated({"--abandoned-build-seconds", "0"});
  CloseGate();
  const v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto());
  int64_t kernels = 0;
  std::thread patient([&] {
    FusionCaller caller(daemon_->address());
    const v1::PlanFusionResponse made = caller.Plan(request);
    EXPECT_THAT(StatesOf(made), testing::Each(v1::KERNEL_STATE_READY));
    kernels = made.kernels_size();
  });
  EXPECT_TRUE(Eventually([&] { return Status()["flights"]["waiting"].get<int64_t>() >= 1; }));
  v1::PlanFusionResponse response;
  EXPECT_EQ(caller_->Plan(request, &response, milliseconds(300)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  OpenGate();
  patient.join();
  EXPECT_EQ(Metric("fusion_builds_abandoned_total"), 0);
  EXPECT_EQ(Compiled(), kernels);
}

TEST_F(FlowTest, APlanThatNobodyWantsAnyMoreTakesNoKernelFromAnotherThatSharesIt) {
  StartGated({"--abandoned-build-seconds", "0"});
  CloseGate();
  auto jobs = [this] {
    const nlohmann::json workers = Status()["workers"];
    return workers["queued"].get<int64_t>() + workers["running"].get<int64_t>();
  };
  v1::PlanFusionResponse gone, made;
  grpc::ClientContext leaves;
  std::thread first([&] {
    EXPECT_EQ(caller_->stub().PlanFusion(&leaves, SharingKernels(1), &gone).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  EXPECT_TRUE(Eventually([&] { return jobs() >= 2; })) << "what is shared, and its own";
  std::this_thread::sleep_for(milliseconds(200));
  const int64_t of_one = jobs();
  std::thread second([&] { made = FusionCaller(daemon_->address()).Plan(SharingKernels(2)); });
  EXPECT_TRUE(Eventually([&] { return jobs() == of_one + 1; }));
  leaves.TryCancel();
  first.join();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_builds_abandoned_total") == 1; }));
  EXPECT_TRUE(Eventually([&] { return jobs() == of_one; })) << "what only the first wanted goes";
  OpenGate();
  second.join();
  EXPECT_THAT(StatesOf(made), testing::Each(v1::KERNEL_STATE_READY));
  EXPECT_EQ(Compiled(), made.kernels_size()) << "none of them twice, and none of the first's own";
}

TEST_F(FlowTest, BackgroundCallsWaitForInteractiveOnes) {
  StartGated({"--workers", "1"});
  CloseGate();
  std::mutex mutex;
  std::vector<std::string> ended;
  std::vector<std::thread> clients;
  auto call = [&](const std::string& priority, int64_t number) {
    const int64_t before = Status()["workers"]["queued"].get<int64_t>();
    clients.emplace_back([this, priority, number, &mutex, &ended] {
      grpc::ClientContext context;
      context.AddMetadata("x-fusion-priority", priority);
      v1::PlanFusionResponse response;
      const grpc::Status status = caller_->stub().PlanFusion(
          &context, RequestFor(LinearReluModel(number).proto()), &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      const std::lock_guard<std::mutex> lock(mutex);
      ended.push_back(priority);
    });
    EXPECT_TRUE(Eventually([&] { return Status()["workers"]["queued"].get<int64_t>() > before; }));
  };
  // The worker is busy with another.
  clients.emplace_back([this] { caller_->Plan(RequestFor(LinearReluModel(50).proto())); });
  EXPECT_TRUE(Eventually([&] { return Status()["workers"]["running"].get<int64_t>() == 1; }));
  for (int64_t i = 0; i < 3; ++i) call("background", 60 + i);
  call("interactive", 70);
  OpenGate();
  for (std::thread& client : clients) client.join();
  EXPECT_THAT(ended, testing::ElementsAre("interactive", "background", "background", "background"));
}

TEST_F(FlowTest, WhoAsksByDeadlineLeavesABuildThatGoesOn) {
  StartGated({"--abandoned-build-seconds", "0"});
  CloseGate();
  v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_BY_DEADLINE);
  v1::PlanFusionResponse response = caller_->Plan(request);
  EXPECT_EQ(response.kernels(0).state(), v1::KERNEL_STATE_PENDING);
  std::this_thread::sleep_for(milliseconds(100));
  OpenGate();
  EXPECT_TRUE(Eventually([&] { return Compiled() == response.kernels_size(); }));
}

TEST_F(FlowTest, ACallEndsAtTheServersLimitWhateverItsOwnDeadline) {
  StartGated({"--call-seconds", "0.3"});
  CloseGate();
  v1::PlanFusionResponse response;
  EXPECT_EQ(caller_->Plan(RequestFor(LinearReluModel().proto()), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(FlowTest, EqualBytesAreAnsweredWithoutLookingAtThem) {
  StartWithStore();
  v1::PlanFusionRequest request = RequestFor(SentModel("layernorm"));
  request.set_request_id("first");
  const v1::PlanFusionResponse cold = caller_->Plan(request);
  request.set_request_id("second, for the log only");
  const v1::PlanFusionResponse warm = caller_->Plan(request);
  ASSERT_EQ(warm.stages_size(), 1);
  EXPECT_EQ(warm.stages(0).stage(), "recall");
  EXPECT_EQ(warm.cache(), v1::CACHE_OUTCOME_HIT_MEMORY);
  EXPECT_EQ(warm.plan().SerializeAsString(), cold.plan().SerializeAsString());
  EXPECT_EQ(warm.binding().SerializeAsString(), cold.binding().SerializeAsString());
  EXPECT_TRUE(daemon_->WaitForOutput("second, for the log only"));
  EXPECT_EQ(Metric("fusion_warm_requests_total{result=\"hit\"}"), 1);
  EXPECT_EQ(Metric("fusion_warm_requests_total{result=\"miss\"}"), 1);

  // The same graph under other names is another answer: of the second level.
  onnx::ModelProto renamed = SentModel("layernorm");
  renamed.mutable_graph()->set_name("other");
  const v1::PlanFusionResponse second = caller_->Plan(RequestFor(renamed));
  EXPECT_EQ(second.plan_key(), cold.plan_key());
  EXPECT_EQ(second.cache(), v1::CACHE_OUTCOME_HIT_MEMORY);
  EXPECT_GT(second.stages_size(), 1);
}

TEST_F(FlowTest, AnAnswerIsNotGivenAgainOnceItsKernelsAreGone) {
  StartWithStore();
  const v1::PlanFusionRequest request = SharingKernels(1);
  const v1::PlanFusionResponse cold = caller_->Plan(request);
  EXPECT_EQ(caller_->Plan(request).stages_size(), 1);
  v1::InvalidateRequest forget;
  for (const std::string& key : KeysOf(cold)) forget.add_kernel_keys(key);
  std::string response;
  const grpc::Status done =
      admin_->CallBytes("/fusion.v1.FusionAdmin/Invalidate", forget.SerializeAsString(), &response);
  ASSERT_TRUE(done.ok()) << done.error_message();
  std::vector<StreamedKernel> kernels;
  ASSERT_TRUE(caller_->GetKernels(KeysOf(cold), &kernels).ok());
  for (const StreamedKernel& kernel : kernels) EXPECT_NE(kernel.state, v1::KERNEL_STATE_READY);
  const v1::PlanFusionResponse again = caller_->Plan(request);
  EXPECT_GT(again.stages_size(), 1);
  kernels.clear();
  ASSERT_TRUE(caller_->GetKernels(KeysOf(again), &kernels).ok());
  for (const StreamedKernel& kernel : kernels) EXPECT_EQ(kernel.state, v1::KERNEL_STATE_READY);
}

TEST_F(FlowTest, ARefusedCallIsToldWhenToTryAgain) {
  Start({"--tenant-limit", "*:rate=0.1,burst=1"});
  const v1::PlanFusionRequest request =
      RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_PLAN_ONLY);
  caller_->Plan(request);
  v1::PlanFusionResponse response;
  const grpc::Status refused = caller_->Plan(request, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << "never UNAVAILABLE: " << refused.error_message();
  EXPECT_THAT(refused.error_message(), HasSubstr("more than 0.1 calls a second"));
  v1::ErrorStatus details;
  ASSERT_TRUE(details.ParseFromString(refused.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.RetryInfo")
      << "as clients of every language know it";
  v1::RetryInfo retry;
  ASSERT_TRUE(retry.ParseFromString(details.details(0).value()));
  EXPECT_GE(retry.retry_delay().seconds(), 5);
  EXPECT_EQ(Metric("fusion_admission_rejected_total{reason=\"rate\"}"), 1);
}

TEST_F(FlowTest, WhatATenantMayKeepPutsOutItsOwnPlans) {
  Start({"--store", dir_.path("store"), "--tokens",
         dir_.Write("tokens", TokenOf("small") + TokenOf("large")), "--tenant-limit",
         "small:stored=100KiB"});
  auto plan = [&](const std::string& tenant, int64_t rows) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + tenant);
    v1::PlanFusionResponse response;
    const grpc::Status status = caller_->stub().PlanFusion(
        &context, RequestFor(LinearReluModel(rows).proto(), v1::PLAN_MODE_PLAN_ONLY), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    for (const std::string& warning : response.warnings()) {
      EXPECT_THAT(warning, testing::Not(HasSubstr("not stored")));
    }
  };
  auto evicted = [&] { return Metric("fusion_cache_evictions_total{tier=\"disk\"}"); };
  for (int64_t rows = 1; rows <= 60; ++rows) plan("large", rows);
  EXPECT_EQ(evicted(), 0) << "there is room";
  for (int64_t rows = 101; rows <= 160; ++rows) plan("small", rows);
  const double gone = evicted();
  EXPECT_GT(gone, 0);
  EXPECT_LT(gone, 60) << "some of them are there";
  EXPECT_GE(Metric("fusion_cache_entries{kind=\"plan\",tier=\"disk\"}"), 60) << "those of others";
}

TEST_F(FlowTest, TextsOfAPlanHoldWhatTheyTakeOfTheBytesUnderWay) {
  StartGated({"--max-inflight-bytes", "64KiB"});
  const v1::PlanFusionResponse known = caller_->Plan(RequestFor(LinearReluModel().proto()));
  v1::GetStoredRequest texts;
  texts.set_plan(known.plan_key());
  v1::ExplainPlanRequest why;
  why.set_plan_key(known.plan_key());
  auto ask_both = [&] {
    std::vector<grpc::Status> ends(2);
    grpc::ClientContext first, second;
    v1::GetStoredResponse stored;
    v1::ExplainPlanResponse explained;
    ends[0] = caller_->stub().GetStored(&first, texts, &stored);
    ends[1] = caller_->stub().ExplainPlan(&second, why, &explained);
    return ends;
  };
  for (const grpc::Status& end : ask_both()) EXPECT_TRUE(end.ok()) << end.error_message();
  CloseGate();
  v1::PlanFusionRequest large = RequestFor(LinearReluModel(9).proto());
  large.set_request_id(std::string(56 << 10, 'r'));
  std::thread waits([&] { caller_->Plan(large); });
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_bytes") > 56 << 10; }));
  for (const grpc::Status& end : ask_both()) {
    EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << end.error_message();
    EXPECT_THAT(end.error_message(), HasSubstr("requests of 56."));
    EXPECT_THAT(end.error_details(), HasSubstr("google.rpc.RetryInfo"));
  }
  OpenGate();
  waits.join();
  // A call is under way until its answer is sent, which is when its caller has it or a little
  // later.
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_bytes") < 1 << 10; }));
  for (const grpc::Status& end : ask_both()) EXPECT_TRUE(end.ok()) << end.error_message();
}

TEST_F(FlowTest, WhoMeetsAFullCompileQueueIsToldWhenToTryAgainAndGetsThere) {
  StartGated({"--workers", "1", "--compile-queue", "1"});
  CloseGate();
  const v1::PlanFusionRequest request = RequestFor(SentModel("bert_layer"));
  v1::PlanFusionResponse response;
  std::thread opens([&] {
    EXPECT_TRUE(Eventually([&] { return Status()["workers"]["rejected"].get<int64_t>() > 0; }));
    OpenGate();
  });
  grpc::Status refused = caller_->Plan(request, &response);
  opens.join();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("compile queue is full: 1 jobs wait"));
  EXPECT_THAT(refused.error_details(), HasSubstr("google.rpc.RetryInfo"));
  for (int tries = 0; !refused.ok(); ++tries) {
    ASSERT_LT(tries, 50) << "each of them makes a kernel or two";
    ASSERT_THAT(refused.error_details(), HasSubstr("google.rpc.RetryInfo"));
    refused = caller_->Plan(request, &response);
  }
}

// Threads that wait for compilers are held, but a call behind them has little to do itself.
TEST_F(FlowTest, WhatCompilersTakeIsNoReasonToRefuseACallForItsDeadline) {
  constexpr std::string_view kSlowCompiler = R"(#!/bin/sh
case "$1" in --version|-print-prog-name=*) exec /usr/bin/g++ "$@";; esac
[ ! -e "$(dirname "$0")/slow" ] || sleep 2
exec /usr/bin/g++ "$@"
)";
  Start({"--allow-compiler", WriteCompiler(kSlowCompiler), "--sandbox", "none", "--workers", "1",
         "--request-threads", "2", "--request-queue", "8"});
  dir_.Write("slow", "");
  auto distinct = [](int64_t rows, v1::PlanMode mode) {
    return RequestFor(LinearReluModel(rows).proto(), mode);
  };
  caller_->Plan(distinct(10, v1::PLAN_MODE_COMPILE));  // twice two seconds: so much it knows
  std::vector<std::thread> others;
  for (int64_t rows : {11, 12, 13}) {
    others.emplace_back([&, rows] {
      v1::PlanFusionResponse response;
      FusionCaller(daemon_->address()).Plan(distinct(rows, v1::PLAN_MODE_COMPILE), &response);
    });
  }
  EXPECT_TRUE(Eventually([&] { return Status()["calls"]["queued"].get<int64_t>() == 1; }));
  // Until it begins two seconds or more, half of a compile; with a whole one of its own twice that
  // would be more than it has.
  v1::PlanFusionResponse response;
  const grpc::Status status =
      caller_->Plan(distinct(14, v1::PLAN_MODE_PLAN_ONLY), &response, std::chrono::seconds(10));
  EXPECT_NE(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  for (std::thread& other : others) other.join();
}

// Two tenants, of whom one asks for more than there is; what he asks for takes until the gate
// opens.
class TwoTenantsTest : public FlowTest {
 protected:
  void SetUp() override {
    StartGated({"--tokens", dir_.Write("tokens", TokenOf("greedy") + TokenOf("modest")),
                "--workers", "1", "--request-threads", "8", "--request-queue", "16"});
    CloseGate();
  }
  grpc::Status Plan(const std::string& tenant, const v1::PlanFusionRequest& request,
                    v1::PlanFusionResponse* response) const {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + tenant);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(3));
    return caller_->stub().PlanFusion(&context, request, response);
  }
  grpc::Status Plan(const std::string& tenant, const v1::PlanFusionRequest& request) const {
    v1::PlanFusionResponse response;
    return Plan(tenant, request, &response);
  }
  static v1::PlanFusionRequest Distinct(int64_t number, v1::PlanMode mode = v1::PLAN_MODE_COMPILE) {
    return RequestFor(LinearReluModel(number).proto(), mode);
  }
};

TEST_F(TwoTenantsTest, WhatOneWantsLaterCannotKeepTheOtherOut) {
  int64_t number = 10;
  grpc::Status status;
  while (status.ok() && number < 2000) {
    status = Plan("greedy", Distinct(number++, v1::PLAN_MODE_BY_DEADLINE));
  }
  ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << "a queue is full";
  RecordProperty("greedy", StrCat(number));
  const v1::PlanFusionRequest wanted = Distinct(number, v1::PLAN_MODE_BY_DEADLINE);
  v1::PlanFusionResponse response;
  status = Plan("modest", wanted, &response);
  ASSERT_TRUE(status.ok()) << "after " << number << " of greedy: " << status.error_message();
  EXPECT_EQ(response.kernels(0).state(), v1::KERNEL_STATE_PENDING);
  OpenGate();
  EXPECT_TRUE(Eventually([&] {
    return Plan("modest", wanted, &response).ok() &&
           response.kernels(0).state() == v1::KERNEL_STATE_READY;
  })) << "long before all of greedy's";
  daemon_->Send(SIGKILL);
}

TEST_F(TwoTenantsTest, OneCannotKeepTheOtherOut) {
  std::vector<std::thread> greedy;
  std::atomic<int> served{0}, refused{0};
  for (int64_t i = 0; i < 64; ++i) {
    greedy.emplace_back([&, i] {
      grpc::Status status = Plan("greedy", Distinct(10 + i));
      ++(status.ok() ? served : refused);
      if (status.ok()) return;
      EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
      EXPECT_THAT(status.error_details(), HasSubstr("google.rpc.RetryInfo"));
    });
  }
  EXPECT_TRUE(Eventually([&] { return refused >= 64 - 24; })) << "threads and queue are greedy's";
  for (int64_t i = 0; i < 20; ++i) {
    const grpc::Status status = Plan("modest", Distinct(100 + i, v1::PLAN_MODE_PLAN_ONLY));
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(served, 0) << "all that was in greedy's way";
  OpenGate();
  EXPECT_TRUE(Plan("modest", Distinct(200)).ok());
  for (std::thread& client : greedy) client.join();
  EXPECT_GT(served, 0);
}

TEST_F(FlowTest, AMissIsExplainedByTheNearestPlan) {
  StartWithStore();
  v1::PlanFusionRequest request = RequestFor(SentModel("layernorm"), v1::PLAN_MODE_PLAN_ONLY);
  request.set_explain_miss(true);
  const v1::PlanFusionResponse first = caller_->Plan(request);
  ASSERT_TRUE(first.has_miss());
  EXPECT_EQ(first.miss().nearest_plan_key(), "");
  EXPECT_EQ(first.miss().summary(), "no other plan is stored");
  caller_->Plan(RequestFor(SentModel("mlp"), v1::PLAN_MODE_PLAN_ONLY));
  request.mutable_target()->set_threads(2);
  const v1::PlanFusionResponse second = caller_->Plan(request);
  EXPECT_EQ(second.cache(), v1::CACHE_OUTCOME_MISS);
  EXPECT_EQ(second.miss().nearest_plan_key(), first.plan_key());
  EXPECT_EQ(second.miss().compared_plans(), 2);
  ASSERT_EQ(second.miss().differences_size(), 1);
  EXPECT_EQ(second.miss().differences(0).field(), "device");
  EXPECT_THAT(second.miss().summary(), HasSubstr("a plan of the same graph is stored"));
  request.set_explain_miss(false);
  EXPECT_FALSE(caller_->Plan(request).has_miss());
}

}  // namespace
}  // namespace fusion
