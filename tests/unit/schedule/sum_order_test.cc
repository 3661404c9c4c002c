#include "core/schedule/ir/sum_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/graph/build/text.h"
#include "core/schedule/lower/lower.h"
#include "core/schedule/tiles/candidates.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

std::vector<DimId> Order(const std::vector<SumDim>& dims) {
  std::vector<DimId> out;
  for (const SumDim& d : dims) out.push_back(d.dim);
  return out;
}

// 3x3 windows of 32 channels: [30, 32, 32] with channels last, [32, 30, 32] with channels first.
const std::vector<SumDim> kChannelsLast = {{0, 32, 1, 9}, {1, 3, 960, 3}, {2, 3, 32, 1}};
const std::vector<SumDim> kChannelsFirst = {{0, 32, 960, 9}, {1, 3, 32, 3}, {2, 3, 1, 1}};

TEST(SumOrder, WalksRowsAsTheyLieWhereColumnsAreLaidOut) {
  const std::vector<SumDim> best = LeastJumps(kChannelsLast, /*laid_out=*/true);
  EXPECT_EQ(Order(best), (std::vector<DimId>{1, 2, 0}));
  EXPECT_LT(JumpsOfSum(best), JumpsOfSum(kChannelsLast));
}

TEST(SumOrder, ASumThatBothOperandsWalkWithoutAGapHasNoTurns) {
  const std::vector<SumDim> dense = {{0, 32, 9, 9}, {1, 3, 3, 3}, {2, 3, 1, 1}};
  EXPECT_EQ(JumpsOfSum(dense), 0);
  EXPECT_EQ(Order(LeastJumps(dense, false)), Order(dense));
}

TEST(SumOrder, WithoutAGapThroughTheRowsTheLongestRunIsInnermost) {
  EXPECT_EQ(LeastJumps(kChannelsFirst, /*laid_out=*/true).back().dim, 0);
}

TEST(SumOrder, NoOrderTurnsLess) {
  std::mt19937 random(1);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<SumDim> dims;
    for (int d = 0, n = 1 + below(4); d < n; ++d) {
      dims.push_back({d, 1.0 + below(5), 1 + below(6), 1 + below(6)});
    }
    const std::vector<SumDim> best = LeastJumps(dims, /*laid_out=*/false);
    ASSERT_EQ(best.size(), dims.size());
    EXPECT_LE(JumpsOfSum(best), JumpsOfSum(dims));
    // Columns that lie as they are walked cost no turns of their own.
    EXPECT_LE(JumpsOfSum(LeastJumps(dims, /*laid_out=*/true)), JumpsOfSum(best));
    std::vector<SumDim> other = dims;
    for (int k = 0; k < 30; ++k) {
      std::shuffle(other.begin(), other.end(), random);
      EXPECT_TRUE(std::is_permutation(
          other.begin(), other.end(), best.begin(),
          [](const SumDim& a, const SumDim& b) { return a.dim == b.dim && a.rows == b.rows; }));
      EXPECT_LE(JumpsOfSum(best), JumpsOfSum(other));
    }
  }
}

// Two convolutions; the second reads what the first leaves with channels last.
TEST(SumOrder, OnlyBitwiseSchedulesKeepTheOrderOfTheGraph) {
  auto graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[1,16,12,12]
  %1 = weight "w" : f32[16,16,3,3]
  %2 = weight "v" : f32[16,16,3,3]
  %3 = Conv(%0, %1) : f32[1,16,10,10]  "" @ ""
  %4 = Relu(%3) : f32[1,16,10,10]  "" @ ""
  %5 = Conv(%4, %2) : f32[1,16,8,8]  "" @ ""
  output %5
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto whole = AsOneGroup(BuildProgram(*graph).value());
  ASSERT_TRUE(whole.ok()) << whole.status();
  const DeviceSpec device = DeviceNamed("generic-avx512", 1);
  int reordered = 0;
  for (bool bitwise : {false, true}) {
    for (const Choice& choice :
         EnumerateChoices(whole->group, device, {.limit = 100, .bitwise = bitwise}, nullptr)) {
      auto lowered = Lower(whole->group, choice, device, bitwise);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const bool moved = ToString(lowered->schedule).find("over [kh") != std::string::npos;
      EXPECT_FALSE(bitwise && moved) << ToString(lowered->schedule);
      reordered += moved ? 1 : 0;
    }
  }
  EXPECT_GT(reordered, 0);
}

}  // namespace
}  // namespace fusion
