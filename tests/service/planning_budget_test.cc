// Short requests for large work: what takes more than its budget is refused at its node, what
// nobody waits for ends, and nobody else loses anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// So many products one after the other, and as many names.
TestModel LongModel(int nodes) {
  TestModel m;
  m.Input("x", {64});
  std::string last = "x";
  for (int i = 0; i < nodes; ++i) {
    const std::string next = StrCat("sum_", i);
    m.Node("Add", {last, "x"}, {next}, StrCat("node_", i));
    last = next;
  }
  m.Output(last, {64});
  return m;
}

class PlanningBudgetTest : public ServerTest {
 protected:
  grpc::Status Plan(TestModel model) {
    const v1::PlanFusionRequest request = RequestFor(model.proto(), v1::PLAN_MODE_PLAN_ONLY);
    v1::PlanFusionResponse response;
    return caller_->Plan(request, &response);
  }
};

TEST_F(PlanningBudgetTest, TooMuchMemoryIsRefusedAtItsNode) {
  Start({"--planning-bytes", "2MiB"});
  const grpc::Status refused = Plan(LongModel(4000));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), AllOf(HasSubstr("node \"node_"), HasSubstr("(Add)"),
                                             HasSubstr("2.00 MiB"), HasSubstr("--planning-bytes")));
  EXPECT_TRUE(Plan(LongModel(3)).ok());
}

TEST_F(PlanningBudgetTest, TooManyStepsAreRefusedAtTheirNode) {
  Start({"--planning-steps", "20000"});
  const grpc::Status refused = Plan(LongModel(4000));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), AllOf(HasSubstr("node \"node_"), HasSubstr("20000 steps"),
                                             HasSubstr("--planning-steps")));
  EXPECT_TRUE(Plan(LongModel(3)).ok());
}

TEST_F(PlanningBudgetTest, NeighboursKeepTheirConnections) {
  Start({"--planning-bytes", "4MiB", "--max-inflight-bytes", "16MiB"});
  std::atomic<bool> over{false};
  std::thread greedy([&] {
    FusionCaller caller(daemon_->address());
    while (!over) {
      v1::PlanFusionRequest request = RequestFor(LongModel(3000).proto(), v1::PLAN_MODE_PLAN_ONLY);
      v1::PlanFusionResponse response;
      caller.Plan(request, &response);
    }
  });
  for (int i = 0; i < 30; ++i) {
    FusionCaller fresh(daemon_->address());
    v1::PlanFusionRequest request = RequestFor(LongModel(2 + i).proto(), v1::PLAN_MODE_PLAN_ONLY);
    v1::PlanFusionResponse response;
    const grpc::Status status = fresh.Plan(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  over = true;
  greedy.join();
  EXPECT_THAT(HttpGet(daemon_->admin_address(), "/metrics").body,
              HasSubstr("fusion_connections_closed_total 0"));
}

}  // namespace
}  // namespace fusion
