#include "server/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/text/text.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kPlanFusionLabels =
    R"(grpc_method="PlanFusion",grpc_service="fusion.v1.FusionService",grpc_type="unary")";

RpcRecord MeteredCall(RpcMethod method, Nanoseconds took, absl::Status status = absl::OkStatus()) {
  RpcRecord record;
  record.method = method;
  record.tenant = "shop";
  record.took = took;
  record.status = std::move(status);
  return record;
}

// A server of no calls so far.
class MetricsTest : public testing::Test {
 protected:
  // What it exports as `series`; -1: nothing.
  double Value(std::string_view series) const {
    const std::string all = text();
    for (std::string_view line : StrSplit(all, '\n')) {
      if (line.starts_with(series) && line.substr(series.size()).starts_with(' ')) {
        return std::stod(std::string(line.substr(series.size() + 1)));
      }
    }
    return -1;
  }
  std::string text() const { return metrics_.Text(now_); }

  ServerSnapshot now_;
  Metrics metrics_{"1.2.3", "g++ 12"};
};

TEST_F(MetricsTest, CallsHaveTheNamesThatGrpcServersShare) {
  for (int i = 0; i < 3; ++i) metrics_.OnStarted(RpcMethod::kPlanFusion);
  metrics_.OnFinished(MeteredCall(RpcMethod::kPlanFusion, std::chrono::milliseconds(1)));
  metrics_.OnFinished(MeteredCall(RpcMethod::kPlanFusion, std::chrono::milliseconds(1),
                                  absl::ResourceExhaustedError("full")));
  EXPECT_EQ(Value(StrCat("grpc_server_started_total{", kPlanFusionLabels, "}")), 3);
  for (const char* code : {"OK", "RESOURCE_EXHAUSTED"}) {
    EXPECT_EQ(Value(StrCat("grpc_server_handled_total{grpc_code=\"", code, "\",", kPlanFusionLabels,
                           "}")),
              1)
        << code;
  }
  EXPECT_EQ(Value(StrCat("grpc_server_handling_seconds_count{", kPlanFusionLabels, "}")), 2);
  EXPECT_THAT(text(), Not(HasSubstr("grpc_method=\"GetKernels\""))) << "nobody called it";
}

TEST_F(MetricsTest, EveryMethodSaysHowItStreams) {
  for (RpcMethod method : kRpcMethods) metrics_.OnStarted(method);
  std::set<std::string> types;
  int series = 0;
  const std::string all = text();
  for (std::string_view line : StrSplit(all, '\n')) {
    if (!line.starts_with("grpc_server_started_total{")) continue;
    ++series;
    const size_t type = line.find("grpc_type=\"");
    ASSERT_NE(type, std::string_view::npos) << line;
    const std::string_view name = line.substr(type + 11);
    types.emplace(name.substr(0, name.find('"')));
  }
  EXPECT_EQ(series, static_cast<int>(kRpcMethods.size()));
  EXPECT_EQ(types, (std::set<std::string>{"client_stream", "server_stream", "unary"}));
}

TEST_F(MetricsTest, TimesOfWarmAndOfColdCallsFallIntoDifferentBuckets) {
  const Nanoseconds times[] = {std::chrono::microseconds(90), std::chrono::microseconds(200),
                               std::chrono::seconds(2), std::chrono::seconds(9)};
  for (Nanoseconds took : times) metrics_.OnFinished(MeteredCall(RpcMethod::kPlanFusion, took));
  std::map<double, double> calls_by_bound;
  const std::string all = text();
  for (std::string_view line : StrSplit(all, '\n')) {
    if (!line.starts_with("grpc_server_handling_seconds_bucket{")) continue;
    const size_t bound = line.find("le=\"") + 4;
    calls_by_bound[std::stod(std::string(line.substr(bound)))] =
        std::stod(std::string(line.substr(line.rfind(' ') + 1)));
  }
  ASSERT_GT(calls_by_bound.size(), 10U);
  EXPECT_DOUBLE_EQ(calls_by_bound.begin()->first, 1e-4);
  EXPECT_EQ(calls_by_bound.begin()->second, 1);
  EXPECT_EQ(calls_by_bound.lower_bound(9e-4)->second, 2);
  EXPECT_EQ(calls_by_bound.lower_bound(2.5)->second, 3);
  EXPECT_EQ(calls_by_bound.lower_bound(10)->second, 4);
  EXPECT_NEAR(Value(StrCat("grpc_server_handling_seconds_sum{", kPlanFusionLabels, "}")), 11.00029,
              1e-9);
}

TEST_F(MetricsTest, ATenantHasItsCallsItsRefusalsAndItsTime) {
  metrics_.OnFinished(MeteredCall(RpcMethod::kPlanFusion, std::chrono::milliseconds(1500)));
  metrics_.OnFinished(MeteredCall(RpcMethod::kListPlans, std::chrono::milliseconds(500),
                                  absl::ResourceExhaustedError("too many calls")));
  RpcRecord stranger = MeteredCall(RpcMethod::kListPlans, std::chrono::seconds(1));
  stranger.tenant.clear();
  metrics_.OnFinished(stranger);
  EXPECT_EQ(Value("fusion_tenant_calls_total{tenant=\"shop\"}"), 2);
  EXPECT_EQ(Value("fusion_tenant_refused_total{tenant=\"shop\"}"), 1);
  EXPECT_EQ(Value("fusion_tenant_seconds_total{tenant=\"shop\"}"), 2);
}

TEST_F(MetricsTest, LimitsAreExportedBesideWhatTheyLimit) {
  now_.inflight_bytes = 3;
  now_.inflight_limit_bytes = 30;
  now_.planning_bytes = 4;
  now_.planning_limit_bytes = 40;
  now_.disk.free_bytes = 500;
  now_.disk.min_free_bytes = 50;
  EXPECT_EQ(Value("fusion_inflight_bytes"), 3);
  EXPECT_EQ(Value("fusion_inflight_limit_bytes"), 30);
  EXPECT_EQ(Value("fusion_planning_bytes"), 4);
  EXPECT_EQ(Value("fusion_planning_limit_bytes"), 40);
  EXPECT_EQ(Value("fusion_store_min_free_bytes"), -1) << "no store";
  now_.disk.dir = "/var/lib/fusiond";
  EXPECT_EQ(Value("fusion_store_free_bytes"), 500);
  EXPECT_EQ(Value("fusion_store_min_free_bytes"), 50);
}

}  // namespace
}  // namespace fusion
