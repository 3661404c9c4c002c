// Plans that are made with fitted constants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/benefit/terms.h"
#include "core/pipeline/planning.h"
#include "tests/models/models.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_toolchain.h"

namespace fusion {
namespace {

class CalibrationTest : public testing::Test {
 protected:
  CalibrationTest() : toolchain_(Toolchain::Open(FakeToolchainOptions(), tools_).value()) {}

  WorkPtr WorkOf(std::string_view name) {
    const std::string model = GenerateModel(name).value().model.SerializeAsString();
    PlanRequest request;
    request.source.onnx_model = model;
    request.target.isa = "avx2";
    request.target.threads = 2;
    Resolver resolver(BuiltInSpecs().value(), toolchain_, /*recalled_bytes=*/0);
    StageContext stages{patient_, Clock::Real()};
    return resolver.Resolve(request, stages).value()->work;
  }
  std::shared_ptr<const StoredPlan> Plan(const WorkPtr& work) {
    PlanOrigin origin = PlanOrigin::kMade;
    PlannedOr planned = planning_.Plan(work, {}, {}, patient_, &origin);
    EXPECT_TRUE(planned.ok()) << planned.status();
    return (*planned)->stored;
  }

  CancelToken patient_;
  CapturingLogger logger_;
  FakeTools tools_;
  Toolchain toolchain_;
  Planning planning_{{}, toolchain_, logger_, Clock::Real()};
};

TEST_F(CalibrationTest, AnEpochChangesThePlanAndNotItsKey) {
  const WorkPtr work = WorkOf("bert_layer");
  const PlanCalibration slow{3, {.launch = 4, .memory = 2, .product = {{"f32", 1.5}}}};
  const WorkPtr calibrated = WithCalibration(work, slow);
  EXPECT_EQ(calibrated->key, work->key);
  EXPECT_NE(calibrated->planning_key, work->planning_key);
  EXPECT_EQ(WithCalibration(calibrated, {})->planning_key, work->planning_key);
  EXPECT_EQ(WithCalibration(work, {}), work);
  const auto usual = Plan(work);
  const auto other = Plan(calibrated);
  EXPECT_EQ(usual->plan.calibration, PlanCalibration());
  EXPECT_EQ(other->plan.calibration, slow);
  EXPECT_EQ(other->key, usual->key);
  EXPECT_GT(other->plan.totals.estimated_us, usual->plan.totals.estimated_us);
}

// What is fitted later starts from the spec again.
TEST_F(CalibrationTest, TermsStayThoseOfTheSpec) {
  const WorkPtr work = WorkOf("bert_layer");
  const PlanCalibration slow{
      1,
      {.launch = 4,
       .element = 2,
       .memory = 3,
       .product = {{"f32", 2}},
       .classes = {{{"products", "product"}, 1.5}, {{"elements", "element-wise"}, 0.6}}}};
  const auto plan = Plan(WithCalibration(work, slow));
  int checked = 0;
  for (const PlanGroup& group : plan->plan.groups) {
    if (group.form.empty() || group.kind == GroupKind::kPrepare) continue;
    ++checked;
    EXPECT_NEAR(ExpectedUs(group.terms, group.form, slow.factors), group.estimate.time_us,
                0.02 * group.estimate.time_us)
        << group.label;
    EXPECT_NEAR(group.terms.launch_us, work->device.launch_s * 1e6, 1e-6) << group.label;
  }
  EXPECT_GT(checked, 3);
}

// Free launches and memory split, dear launches join: the plan follows the device.
TEST_F(CalibrationTest, PlansMoveWithTheCostOfALaunch) {
  constexpr double kFree = 1.0 / 64;
  const CostFactors free{.launch = kFree,
                         .barrier = kFree,
                         .task = kFree,
                         .local = kFree,
                         .shared = kFree,
                         .memory = kFree};
  int fewer = 0;
  int more = 0;
  for (const char* name : {"bert_layer", "mlp", "conv_bn_relu", "swiglu", "gpt2_layer_decode"}) {
    const WorkPtr work = WorkOf(name);
    const auto launches = [&](const CostFactors& factors) {
      return Plan(WithCalibration(work, {1, factors}))->plan.totals.launches;
    };
    const int64_t usual = launches({});
    const int64_t dear = launches({.launch = 10});
    const int64_t apart = launches(free);
    EXPECT_LE(dear, usual) << name;
    EXPECT_LE(usual, apart) << name;
    fewer += dear < usual ? 1 : 0;
    more += apart > usual ? 1 : 0;
  }
  EXPECT_GE(fewer, 2);
  EXPECT_GE(more, 3);
}

}  // namespace
}  // namespace fusion
