#include "core/schedule/ir/aliases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Pairs = std::vector<std::pair<BufferId, BufferId>>;

// p2 = p0 + p1, either of which may lie where p2 does; with something replaced. Nothing writes p3.
Pairs AliasesWith(const std::string& from, const std::string& to) {
  std::string text = R"(schedule "Add" {
  dims m:8 n:6
  param p0 input f32[8,6] strides [6, 1]
  param p1 input f32[8,6] strides [6, 1]
  param p2 output f32[8,6] strides [6, 1]
  param p3 output f32[8,6] strides [6, 1]
  phase {
    segment m:4 {
      each [m, n] {
        v0 = load p0[m, n]
        v1 = load p1[m, n]
        v2 = add(v0, v1)
        store p2[m, n] = v2
      }
    }
  }
}
)";
  size_t at = text.find(from);
  FUSION_CHECK(at != std::string::npos, from);
  text.replace(at, from.size(), to);
  auto schedule = ParseSchedule(text);
  FUSION_CHECK(schedule.ok(), Message(schedule.status()));
  return FindAliases(*schedule);
}

TEST(FindAliases, TheFirstInputThatFitsMayTakeTheOutput) {
  EXPECT_THAT(AliasesWith("Add", "Add"), ElementsAre(Pair(2, 0)));
}

TEST(FindAliases, FormsMustBeEqual) {
  EXPECT_THAT(AliasesWith("p0 input f32[8,6] strides [6, 1]", "p0 input f32[8,6] strides [8, 1]"),
              ElementsAre(Pair(2, 1)));
  EXPECT_THAT(AliasesWith("p0 input f32[8,6]", "p0 input f32[9,6]"), ElementsAre(Pair(2, 1)));
  EXPECT_THAT(AliasesWith("p0 input", "p0 weight"), ElementsAre(Pair(2, 1)));
}

TEST(FindAliases, InputsReadAtAnotherElementKeepTheirMemory) {
  EXPECT_THAT(AliasesWith("v0 = load p0[m, n]", "v0 = load p0[m, 0]"), ElementsAre(Pair(2, 1)));
  EXPECT_THAT(AliasesWith("v0 = load p0[m, n]", "v0 = load p0[m, n] where n in [0, 3]"),
              ElementsAre(Pair(2, 1)));
}

TEST(FindAliases, InputsReadByAnotherStatementKeepTheirMemory) {
  EXPECT_THAT(AliasesWith("      each [m, n] {\n", R"(      alloc t0 staged f32[m]
      each [m] {
        v0 = load p0[m, 0]
        store t0[m] = v0
      }
      each [m, n] {
)"),
              ElementsAre(Pair(2, 1)));
  EXPECT_THAT(AliasesWith("      each [m, n] {\n", R"(      alloc t0 staged f32[m, n]
      copy t0[m, n] = p0[m, n] over [m, n]
      each [m, n] {
)"),
              ElementsAre(Pair(2, 1)));
}

TEST(FindAliases, BlocksThatMeetInAnElementKeepInputsApart) {
  EXPECT_THAT(AliasesWith("store p2[m, n]", "store p2[0, n]"), IsEmpty());
}

TEST(FindAliases, AnInputIsTakenOnce) {
  Pairs pairs =
      AliasesWith("store p2[m, n] = v2\n", "store p2[m, n] = v2\n        store p3[m, n] = v0\n");
  EXPECT_THAT(pairs, ElementsAre(Pair(2, 0), Pair(3, 1)));
}

}  // namespace
}  // namespace fusion
