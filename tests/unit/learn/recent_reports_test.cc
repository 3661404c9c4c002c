#include "core/learn/recent_reports.h"

#include <gtest/gtest.h>

#include "core/base/text/text.h"

namespace fusion {
namespace {

TEST(RecentReports, AnIdIsKnownToItsTenantOnly) {
  RecentReports recent;
  EXPECT_FALSE(recent.Has("a", "1"));
  recent.Add("a", "1");
  recent.Add("a", "1");
  EXPECT_TRUE(recent.Has("a", "1"));
  EXPECT_FALSE(recent.Has("b", "1"));
  EXPECT_FALSE(recent.Has("", "1"));
  EXPECT_EQ(recent.ids(), 1);
}

TEST(RecentReports, TheTenantWithMostLosesItsOldest) {
  RecentReports recent(100);
  for (int i = 0; i < 10; ++i) recent.Add("few", StrCat(i));
  for (int i = 0; i < 100'000; ++i) recent.Add("flood", StrCat(i));
  EXPECT_EQ(recent.ids(), 100);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(recent.Has("few", StrCat(i))) << i;
  EXPECT_TRUE(recent.Has("flood", "99999"));
  EXPECT_TRUE(recent.Has("flood", "99910"));
  EXPECT_FALSE(recent.Has("flood", "99909"));
}

TEST(RecentReports, ManyTenantsShareTheRoom) {
  RecentReports recent(100);
  for (int i = 0; i < 1000; ++i) recent.Add(StrCat("tenant ", i), "id");
  EXPECT_EQ(recent.ids(), 100);
}

}  // namespace
}  // namespace fusion
