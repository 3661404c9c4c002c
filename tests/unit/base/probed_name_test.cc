#include "core/base/text/probed_name.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(ProbedName, TheTextIsReadBack) {
  const ProbedName name{.spec = "generic-avx512", .date = "2026-11-30", .digest = "1a2b3c4d"};
  EXPECT_EQ(ProbedNameText(name), "generic-avx512+probe-20261130-1a2b3c4d");
  EXPECT_EQ(ParseProbedName(ProbedNameText(name)), name);
}

TEST(ProbedName, OtherNamesAreNone) {
  for (const char* name :
       {"", "generic-avx512", "generic-avx512+probe-", "a+probe-2026113-1a2b3c4d",
        "a+probe-20261130-1a2b3c4", "a+probe-2026113x-1a2b3c4d", "a+probe-20261130-1A2b3c4d",
        "a+probe-20261130-1a2b3c4d5", "a-probe-20261130-1a2b3c4d"}) {
    EXPECT_FALSE(ParseProbedName(name)) << name;
    EXPECT_EQ(DeviceNameText(name), name);
  }
}

TEST(ProbedName, PeopleReadTheDate) {
  EXPECT_EQ(DeviceNameText("generic-avx2+probe-20261130-1a2b3c4d"),
            "generic-avx2 with constants measured by probe on 2026-11-30 (1a2b3c4d)");
}

}  // namespace
}  // namespace fusion
