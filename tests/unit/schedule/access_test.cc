#include "core/schedule/ir/access.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

const IndexExpr kM = IndexExpr::Axis(0);
const IndexExpr kN = IndexExpr::Axis(1);

TEST(Access, IndicesNameTheDimsTheyDependOn) {
  IndexMap index = {kM + 3, kN * 2};
  EXPECT_TRUE(Names(index, 0));
  EXPECT_TRUE(Names(index, 1));
  EXPECT_FALSE(Names(index, 2));
  EXPECT_FALSE(Names({IndexExpr::Indirect(0)}, 0));
  EXPECT_EQ(PlainIndex({1, 0}), (IndexMap{kN, kM}));
}

// ElementStrides and StoredOffset say the same about every element of a param.
TEST(Access, ElementStridesAreWhereElementsLie) {
  for (int blocked : {-1, 0, 1, 2}) {
    Buffer b{.level = Level::kGlobal, .shape = {5, 3, 7}};
    b.layout.blocked = blocked;
    if (blocked >= 0) {
      b.layout.block = 4;
    } else {
      b.layout.strides = {30, 8, 1};
    }
    Dims strides = ElementStrides(b, b.shape);
    for (int64_t i = 0; i < 5 * 3 * 7; ++i) {
      std::vector<int64_t> index = {i / 21, i / 7 % 3, i % 7};
      int64_t offset = 0;
      for (size_t d = 0; d < 3; ++d) {
        bool in_blocks = static_cast<int>(d) == blocked;
        offset += in_blocks ? index[d] / 4 * strides[d] + index[d] % 4 : index[d] * strides[d];
      }
      ASSERT_EQ(offset, StoredOffset(b, index)) << "blocked " << blocked << " element " << i;
    }
  }
}

TEST(Access, StridesAddUpOverTheDimsOfATensor) {
  EXPECT_EQ(StrideAlong({kM, kN}, {64, 1}, 0), 64);
  EXPECT_EQ(StrideAlong({kM, kN}, {64, 1}, 1), 1);
  EXPECT_EQ(StrideAlong({kM, kN}, {64, 1}, 2), 0);
  EXPECT_EQ(StrideAlong({kM, kM * 2 + kN}, {64, 1}, 0), 66);
  EXPECT_EQ(StrideAlong({kM, kN}, {64, 128}, 1, {.blocked = 1, .block = 8}), 1);
  EXPECT_EQ(StrideAlong({kM, kN}, {64, 128}, 1, {.blocked = 1, .block = 8, .pack = 2}), 2);
}

TEST(Access, LocalBuffersAreAsLongAsTheirWindows) {
  Schedule s;
  s.dims = {{"m", 100}, {"n", 200}};
  s.buffers = {{.name = "t0", .level = Level::kStaged, .dims = {1, 0}},
               {.name = "t1",
                .level = Level::kStaged,
                .dims = {1, 0},
                .layout = {.blocked = 0, .block = 8}}};
  Access dense{.buffer = 0, .index = {kN, kM}};
  EXPECT_EQ(StrideAlong(s, dense, {12, 32}, 0), 1);
  EXPECT_EQ(StrideAlong(s, dense, {12, 32}, 1), 12);
  for (int64_t length : {0, 1}) {
    EXPECT_GT(StrideAlong(s, dense, {length, 32}, 1), 1) << "rows of " << length << " are padded";
  }
  Access blocked{.buffer = 1, .index = {kN, kM}};
  EXPECT_EQ(StrideAlong(s, blocked, {12, 32}, 0), 8);
  EXPECT_EQ(StrideAlong(s, blocked, {12, 32}, 1), 1);
}

}  // namespace
}  // namespace fusion
