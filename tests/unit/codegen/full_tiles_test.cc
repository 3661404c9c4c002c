// Which selects a tile decides: masks that are functions of where they are.
#include "core/codegen/cpu/full_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/schedule_text.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// What is found for a region over q and k, which ends with v9, of scores v0.
struct Found {
  FullTiles tiles;
  std::vector<std::string> everywhere;
};

Found Find(const std::string& steps, int64_t keys = 64) {
  const Schedule schedule = ScheduleOf(StrCat(R"(schedule "mask" {
  dims q:64 k:)",
                                              keys, R"(
  param p0 input f32[64,)",
                                              keys, R"(] strides [)", keys, R"(, 1]
  param p1 output f32[64,)",
                                              keys, R"(] strides [)", keys, R"(, 1]
  phase {
    segment q:8 {
      each [q, k] {
        v0 = load p0[q, k]
        v1 = axis(q)
        v2 = axis(k)
        v3 = f32(-inf)
)",
                                              steps, R"(
        store p1[q, k] = v9
      }
    }
  }
}
)"));
  FUSION_CHECK(Verify(schedule).ok(), Message(Verify(schedule)));
  const auto& each = std::get<EachStmt>(schedule.phases[0].segments[0].body[0].node);
  Found found{.tiles = FindFullTiles(each, schedule.dims), .everywhere = {}};
  for (const IndexExpr& e : found.tiles.everywhere) {
    found.everywhere.push_back(e.ToString([&](int d) { return schedule.dim(d).name; }));
  }
  return found;
}

TEST(FullTiles, OfACausalMask) {
  for (const char* steps :
       {"v4 = le(v2, v1)\nv9 = select(v4, v0, v3)", "v4 = gt(v2, v1)\nv9 = select(v4, v3, v0)",
        "v4 = gt(v2, v1)\nv5 = not(v4)\nv9 = select(v5, v0, v3)",
        "v4 = sub(v2, v1)\nv5 = i64(0)\nv6 = le(v4, v5)\nv9 = select(v6, v0, v3)",
        "v4 = cast.f32(v1)\nv5 = cast.f32(v2)\nv6 = ge(v4, v5)\nv9 = select(v6, v0, v3)"}) {
    SCOPED_TRACE(steps);
    Found found = Find(steps);
    EXPECT_THAT(found.everywhere, ElementsAre("q + -1*k"));
    EXPECT_EQ(found.tiles.kept.size(), 1u);
  }
  EXPECT_THAT(Find("v4 = gt(v2, v1)\nv9 = select(v4, v3, v0)").tiles.kept, ElementsAre(Pair(9, 2)));
}

TEST(FullTiles, OfAMaskThatIsAdded) {
  Found found =
      Find("v4 = lt(v1, v2)\nv5 = f32(0x0p+0)\nv6 = select(v4, v3, v5)\nv9 = add(v0, v6)");
  EXPECT_THAT(found.everywhere, ElementsAre("q + -1*k"));
  EXPECT_THAT(found.tiles.kept, ElementsAre(Pair(6, 2)));
}

TEST(FullTiles, OfAWindow) {
  Found found = Find(R"(v4 = i64(8)
v5 = sub(v1, v4)
v6 = gt(v2, v5)
v7 = le(v2, v1)
v8 = and(v6, v7)
v9 = select(v8, v0, v3))");
  EXPECT_THAT(found.everywhere, ElementsAre("-1*q + k + 7", "q + -1*k"));
  found = Find(R"(v4 = i64(8)
v5 = sub(v1, v4)
v6 = le(v2, v5)
v7 = gt(v2, v1)
v8 = or(v6, v7)
v9 = select(v8, v3, v0))");
  EXPECT_THAT(found.everywhere, ElementsAre("-1*q + k + 7", "q + -1*k"));
}

TEST(FullTiles, AreNoneOfWhatIsNotKnownExactly) {
  // By values, by equality, by one side of an "or".
  EXPECT_THAT(Find("v4 = gt(v0, v3)\nv9 = select(v4, v0, v3)").everywhere, IsEmpty());
  EXPECT_THAT(Find("v4 = eq(v1, v2)\nv9 = select(v4, v0, v3)").everywhere, IsEmpty());
  EXPECT_THAT(
      Find("v4 = le(v2, v1)\nv5 = gt(v0, v3)\nv6 = or(v4, v5)\nv9 = select(v6, v0, v3)").everywhere,
      IsEmpty());
  EXPECT_THAT(Find("v4 = le(v2, v1)\nv5 = gt(v0, v3)\nv6 = and(v4, v5)\nv9 = select(v6, v0, v3)")
                  .everywhere,
              IsEmpty());
  // Products of coordinates; numbers that a type rounds or wraps.
  EXPECT_THAT(Find("v4 = mul(v1, v2)\nv5 = le(v4, v2)\nv9 = select(v5, v0, v3)").everywhere,
              IsEmpty());
  EXPECT_THAT(Find("v4 = cast.i8(v1)\nv5 = cast.i8(v2)\nv6 = ge(v4, v5)\nv9 = select(v6, v0, v3)")
                  .everywhere,
              IsEmpty());
  EXPECT_THAT(Find("v4 = le(v2, v1)\nv9 = select(v4, v0, v3)", int64_t{1} << 24).everywhere,
              IsEmpty());
  EXPECT_THAT(Find("v4 = f32(0x1p-1)\nv5 = cast.f32(v2)\nv6 = add(v4, v5)\nv7 = cast.f32(v1)\n"
                   "v8 = ge(v7, v6)\nv9 = select(v8, v0, v3)")
                  .everywhere,
              IsEmpty());
}

}  // namespace
}  // namespace fusion
