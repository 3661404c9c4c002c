// Blocks that compute their halos, on the schedule interpreter, against the evaluator: every dim
// that windows slide along cut into tiles that divide nothing, windows read in place and gathered.
#include <gtest/gtest.h>

#include "core/check/reference_checker.h"
#include "core/schedule/lower/reference.h"
#include "core/schedule/tiles/candidates.h"
#include "tests/support/interpreted_kernel.h"
#include "tests/support/window_cuts.h"

namespace fusion {
namespace {

class WindowSchedules : public ::testing::TestWithParam<WindowCase> {};

TEST_P(WindowSchedules, EqualTheEvaluator) {
  const WindowCase& c = GetParam();
  WholeProgram whole = WholeOf(c);
  DeviceSpec device = DeviceNamed("generic-avx2", 2);
  int with_halos = 0;
  for (const Choice& choice : WindowTilings(whole.group, device)) {
    auto lowered = Lower(whole.group, choice, device, false);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const Schedule& schedule = lowered->schedule;
    std::string text = ToString(schedule);
    SCOPED_TRACE(text);
    ASSERT_TRUE(Verify(schedule).ok()) << Verify(schedule);
    auto back = ParseSchedule(text);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(ToString(*back), text);
    with_halos += schedule.phases[0].segments[0].halos.empty() ? 0 : 1;
    KernelReference reference = MakeReference(whole.program, whole.group, *lowered);
    auto report = CheckKernel(*Interpreted(schedule), schedule, reference);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->verified) << report->reason;
  }
  // Otherwise nothing was shown about halos.
  EXPECT_EQ(with_halos > 0, *c.slices != '\0');
}

INSTANTIATE_TEST_SUITE_P(All, WindowSchedules, ::testing::ValuesIn(kWindowCases),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace fusion
