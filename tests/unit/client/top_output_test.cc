#include "client/fusionctl/output/top_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/wire/basics/scalars.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Status = v1::GetServerStatusResponse;

Status SampleState(double uptime_seconds, int64_t ok, int64_t refused, double time_s) {
  Status out;
  out.set_version("1.0");
  out.set_uptime_seconds(uptime_seconds);
  out.set_ready(true);
  v1::MethodCalls* plan = out.add_methods();
  plan->set_method("PlanFusion");
  plan->set_started(ok + refused);
  plan->set_seconds(time_s);
  if (ok > 0) (*plan->mutable_finished())["OK"] = ok;
  if (refused > 0) (*plan->mutable_finished())["RESOURCE_EXHAUSTED"] = refused;
  out.set_warm_hits(ok / 2);
  out.set_warm_misses(ok - ok / 2);
  out.mutable_workers()->set_limit(2);
  out.mutable_workers()->set_done(ok / 10);
  v1::MeasuredPlan* top = out.add_top_plans();
  top->set_plan_key(DigestToWire(Sha256("plan")));
  top->set_model_name("bert\x1b[31m");
  top->set_target("toy");
  top->set_threads(2);
  top->set_calls(1000);
  top->set_median_us(300);
  top->set_estimated_us(200);
  return out;
}

TEST(Top, RatesAreOverTheTimeBetweenTwoStates) {
  const TopView view{.address = "a:1",
                     .now = SampleState(110, 300, 20, 8),
                     .before = SampleState(100, 100, 10, 6)};
  const nlohmann::ordered_json top = TopJson(view);
  EXPECT_DOUBLE_EQ(top["rates_over_seconds"], 10);
  EXPECT_DOUBLE_EQ(top["codes"]["OK"]["per_second"], 20);
  EXPECT_DOUBLE_EQ(top["codes"]["RESOURCE_EXHAUSTED"]["per_second"], 1);
  EXPECT_EQ(top["codes"]["OK"]["total"], 300);
  EXPECT_DOUBLE_EQ(top["methods"]["PlanFusion"]["per_second"], 21);
  EXPECT_NEAR(top["methods"]["PlanFusion"]["mean_us"], 2e6 / 210, 1e-6);
  EXPECT_DOUBLE_EQ(top["warm_ratio"], 0.5);
  const std::string text = TopText(view);
  EXPECT_THAT(text,
              AllOf(HasSubstr("21.0 a second, over 10.00 s"), HasSubstr("warm 50.0 %"),
                    HasSubstr("2.0 a second, 30 made"), HasSubstr("1.50 x"), HasSubstr("300 ms")))
      << text;
}

TEST(Top, WithoutAnEarlierStateRatesAreAverages) {
  TopView view{.address = "a:1", .now = SampleState(10, 300, 0, 8)};
  EXPECT_DOUBLE_EQ(TopJson(view)["codes"]["OK"]["per_second"], 30);
  EXPECT_THAT(TopText(view), HasSubstr("30.0 a second, on average over 10 s"));
  // The server has restarted: it counts from 0 again.
  view.before = SampleState(5000, 100000, 10, 6);
  EXPECT_DOUBLE_EQ(TopJson(view)["codes"]["OK"]["per_second"], 30);
  view.now = Status();
  view.before.reset();
  EXPECT_TRUE(TopJson(view)["warm_ratio"].is_null());
  EXPECT_THAT(TopText(view), AllOf(HasSubstr("not ready"), HasSubstr("0.0 a second"),
                                   HasSubstr("no latencies of plans were reported")));
}

TEST(Top, ALostServerIsNamedAboveTheLastState) {
  const TopView view{.address = "a:1",
                     .now = SampleState(10, 300, 0, 8),
                     .lost = "connection refused",
                     .lost_seconds = 70};
  EXPECT_THAT(TopText(view),
              AllOf(HasSubstr("no answer for 1 min: connection refused"), HasSubstr("PlanFusion")));
  EXPECT_THAT(TopText(view), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace fusion
