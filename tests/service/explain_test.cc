// ExplainPlan of the real fusiond, through the client library and with bytes that no client of ours
// would send.
#include "client/client.h"
#include "core/device/host_isa.h"
#include "tests/models/models.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ExplainTest : public ServerTest {
 protected:
  void Serve(std::vector<std::string> args = {}) {
    Start(std::move(args));
    client_ = Client::Connect(daemon_->address()).value();
  }

  // Two layers of BERT: repeated entries, groups that gain nothing from joining.
  static FusionRequest Request(FusionMode fusion = FusionMode::kFused) {
    ModelParams params{.seq = 32, .layers = 2, .hidden = 64, .heads = 2, .kv_heads = 2, .ff = 128};
    absl::StatusOr<GeneratedModel> model = GenerateModel(*FindModel("bert_tiny"), params);
    EXPECT_TRUE(model.ok()) << model.status();
    FusionRequest request;
    request.onnx_model = model->model.SerializeAsString();
    request.target.isa = HostIsaName();
    request.mode = PlanMode::kPlanOnly;
    request.options.fusion = fusion;
    return request;
  }

  grpc::Status Send(const v1::ExplainPlanRequest& request) {
    grpc::ClientContext context;
    v1::ExplainPlanResponse response;
    return caller_->stub().ExplainPlan(&context, request, &response);
  }

  std::unique_ptr<Client> client_;
};

TEST_F(ExplainTest, AGraphIsPlannedOnlyIfTheServerHasNoPlanOfIt) {
  Serve();
  absl::StatusOr<PlanExplanation> first = client_->ExplainPlan(Request());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->cache, CacheOutcome::kMiss);
  EXPECT_EQ(first->node_names.size(), static_cast<size_t>(first->plan.nodes));
  EXPECT_THAT(first->node_names, Not(Each(std::string())));
  EXPECT_THAT(first->plan.launches, IsEmpty());
  absl::StatusOr<PlanExplanation> again = client_->ExplainPlan(Request());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->cache, CacheOutcome::kHitMemory);
  EXPECT_EQ(again->plan_key, first->plan_key);
  EXPECT_EQ(again->plan.decisions.size(), first->plan.decisions.size());
  // It is the plan that PlanFusion gives.
  absl::StatusOr<FusionReply> planned = client_->PlanFusion(Request());
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->plan_key, first->plan_key);
  EXPECT_EQ(planned->cache, CacheOutcome::kHitMemory);
  EXPECT_THAT(planned->plan.decisions, IsEmpty()) << "who runs a plan needs none of it";
  EXPECT_EQ(Metric("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"ExplainPlan\","
                   "grpc_service=\"fusion.v1.FusionService\",grpc_type=\"unary\"}"),
            2);
}

TEST_F(ExplainTest, EveryGroupAndEveryAdjacentNodeAnswers) {
  Serve();
  PlanExplanation whole = client_->ExplainPlan(Request(FusionMode::kOpByOp)).value();
  for (int g = 0; g < static_cast<int>(whole.plan.groups.size()); ++g) {
    absl::StatusOr<PlanExplanation> part = client_->ExplainPlan(whole.plan_key, {.group = g});
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_THAT(part->plan.decisions, Not(IsEmpty())) << g;
  }
  int pairs = 0;
  for (const PlanDecision& d : whole.plan.decisions) {
    if (d.subject != DecisionSubject::kPair) continue;
    for (const DecisionPlace& place : d.places) {
      ++pairs;
      ExplainFilter filter{.nodes = {place.first.front(), place.second.back()}};
      PlanExplanation part = client_->ExplainPlan(whole.plan_key, filter).value();
      auto same = [&](const PlanDecision& other) { return other.code == d.code; };
      EXPECT_TRUE(std::any_of(part.plan.decisions.begin(), part.plan.decisions.end(), same));
      EXPECT_THAT(part.node_names, IsEmpty()) << "the server keeps no names";
      EXPECT_FALSE(part.cache.has_value());
    }
  }
  EXPECT_GT(pairs, 5);
}

TEST_F(ExplainTest, ALedgerSurvivesARestart) {
  Serve({"--store", dir_.path("store")});
  PlanExplanation before = client_->ExplainPlan(Request()).value();
  client_.reset();
  daemon_.reset();
  Serve({"--store", dir_.path("store")});
  absl::StatusOr<PlanExplanation> after = client_->ExplainPlan(before.plan_key);
  ASSERT_TRUE(after.ok()) << after.status();
  ASSERT_EQ(after->plan.decisions.size(), before.plan.decisions.size());
  for (size_t i = 0; i < before.plan.decisions.size(); ++i) {
    EXPECT_EQ(after->plan.decisions[i].reason, before.plan.decisions[i].reason);
    EXPECT_EQ(after->plan.decisions[i].benefit_us, before.plan.decisions[i].benefit_us);
  }
}

TEST_F(ExplainTest, BadRequestsNameTheField) {
  Serve();
  PlanExplanation whole = client_->ExplainPlan(Request()).value();
  auto by_key = [&](const std::function<void(v1::ExplainPlanRequest*)>& spoil) {
    v1::ExplainPlanRequest request;
    request.set_plan_key(std::string(BytesOf(whole.plan_key)));
    spoil(&request);
    return request;
  };
  struct Case {
    v1::ExplainPlanRequest request;
    grpc::StatusCode code;
    std::string message;
  };
  v1::ExplainPlanRequest no_target;
  no_target.mutable_request()->set_onnx_model("x");
  const Case kCases[] = {
      {v1::ExplainPlanRequest(), grpc::StatusCode::INVALID_ARGUMENT, "subject: missing"},
      {by_key([](auto* r) { r->set_plan_key("abc"); }), grpc::StatusCode::INVALID_ARGUMENT,
       "plan_key: a digest of 3 bytes; expected 32"},
      {by_key([](auto* r) { r->set_plan_key(std::string(32, 'x')); }), grpc::StatusCode::NOT_FOUND,
       "plan_key: this server has no plan 7878"},
      {by_key([](auto* r) { r->add_nodes(100000); }), grpc::StatusCode::INVALID_ARGUMENT,
       "nodes[0]: 100000; the plan has nodes 0.."},
      {by_key([](auto* r) { r->add_nodes(-1); }), grpc::StatusCode::INVALID_ARGUMENT,
       "nodes[0]: -1"},
      {by_key([](auto* r) {
         for (int i = 0; i < 3; ++i) r->add_nodes(i);
       }),
       grpc::StatusCode::INVALID_ARGUMENT, "nodes: 3 positions; expected at most 2"},
      {by_key([](auto* r) { r->set_group(-1); }), grpc::StatusCode::INVALID_ARGUMENT,
       "group: -1 is negative"},
      {by_key([](auto* r) { r->set_group(4000); }), grpc::StatusCode::INVALID_ARGUMENT,
       "group: 4000; the plan has groups 0.."},
      {by_key([](auto* r) {
         r->set_group(0);
         r->add_nodes(0);
       }),
       grpc::StatusCode::INVALID_ARGUMENT, "group: given together with nodes"},
      {no_target, grpc::StatusCode::INVALID_ARGUMENT, "request: target: missing"},
  };
  for (const Case& bad : kCases) {
    grpc::Status status = Send(bad.request);
    EXPECT_EQ(status.error_code(), bad.code) << bad.message;
    EXPECT_THAT(status.error_message(), HasSubstr(bad.message));
  }
  std::string answer;
  EXPECT_EQ(caller_->CallBytes("/fusion.v1.FusionService/ExplainPlan", "\xff\xff\xff", &answer)
                .error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::ExplainPlanRequest many;
  for (int i = 0; i < 600'000; ++i) many.mutable_request()->mutable_op_graph()->add_nodes();
  EXPECT_EQ(Send(many).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace fusion
