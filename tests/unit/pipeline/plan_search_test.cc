#include "core/pipeline/plan_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using testing::HasSubstr;

TEST(StartOfSearch, SaysWhyThereIsNone) {
  DeviceSpec device{.name = "toy", .backend = "cpu"};
  EXPECT_EQ(StartOfSearch(1, device, false, false).state, TileSearchState::kPending);
  EXPECT_THAT(StartOfSearch(1, device, true, false).reason, HasSubstr("dims are left open"));
  EXPECT_THAT(StartOfSearch(1, device, false, true).reason, HasSubstr("check their accesses"));
  device.backend = "abacus";
  const TileSearch none = StartOfSearch(2, device, false, false);
  EXPECT_EQ(none.state, TileSearchState::kNone);
  EXPECT_EQ(none.reason, "no code generator for target \"toy\"");
  EXPECT_EQ(none.level, 2);
}

}  // namespace
}  // namespace fusion
