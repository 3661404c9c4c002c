// A pass of the planner that breaks plans costs no request anything but speed, and is heard of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/pipeline_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

class SkippedPassTest : public FusionPipelineTest {
 protected:
  static PipelineOptions WithABrokenPass() {
    PipelineOptions options;
    auto breaks = [](const DeviceSpec&, Numerics, const LeaveProduct&, Program* program) {
      program->outputs[0] = kNoValue;
      return true;
    };
    options.planning.passes = {{"broken", [](Numerics) { return true; }, breaks}};
    return options;
  }

  FusionPipeline broken_{
      WithABrokenPass(), BuiltInSpecs().value(), toolchain_, store_, workers_, logger_};
};

TEST_F(SkippedPassTest, TheRequestSucceedsWithAWarningThatNamesIt) {
  const std::string model = LinearReluModel().Bytes();
  auto reply = broken_.PlanFusion(Request(model), patient_);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_THAT(reply->warnings, Contains(HasSubstr("went without its pass broken")));
  EXPECT_THAT(reply->kernels, SizeIs(reply->stored->plan.kernels.size()));
  // From the store too.
  auto again = broken_.PlanFusion(Request(model), patient_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->cache, CacheOutcome::kHitMemory);
  EXPECT_THAT(again->warnings, Contains(HasSubstr("went without its pass broken")));
}

TEST_F(SkippedPassTest, ItIsCountedAndLoggedOnceAPlan) {
  EXPECT_THAT(broken_.skipped_passes(), ElementsAre(Pair("broken", 0)));
  const std::string model = LinearReluModel().Bytes();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(broken_.PlanFusion(Request(model), patient_).ok());
  EXPECT_THAT(broken_.skipped_passes(), ElementsAre(Pair("broken", 1)));
  EXPECT_THAT(logger_.LinesWith("pass_skipped"), SizeIs(1));
}

}  // namespace
}  // namespace fusion
