#include "core/schedule/memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fusion {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Random lives of blocks on `steps` steps; some ask for the place of one that ends where they
// begin.
std::vector<MemoryBlock> RandomBlocks(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  int steps = 1 + below(12);
  std::vector<MemoryBlock> blocks(static_cast<size_t>(below(30)));
  for (size_t i = 0; i < blocks.size(); ++i) {
    MemoryBlock& b = blocks[i];
    b.bytes = below(8) == 0 ? 0 : 1 + below(5) * 100;
    b.first = below(steps);
    b.last = b.first + below(steps - b.first);
    if (i == 0 || below(2) == 0) continue;
    int from = below(static_cast<int>(i));
    b.in_place_of = from;
    if (below(4) == 0) continue;  // a wish that cannot always be granted
    b.bytes = blocks[static_cast<size_t>(from)].bytes;
    b.first = blocks[static_cast<size_t>(from)].last;
    b.last = b.first + 1 + below(3);
  }
  return blocks;
}

// True if j was put in the place of i, perhaps by way of others.
bool TookPlaceOf(const std::vector<MemoryBlock>& blocks, const MemoryPlan& plan, size_t j,
                 size_t i) {
  for (int at = blocks[j].in_place_of; at >= 0; at = blocks[static_cast<size_t>(at)].in_place_of) {
    auto from = static_cast<size_t>(at);
    if (blocks[from].bytes != blocks[j].bytes || plan.offsets[from] != plan.offsets[j]) {
      return false;
    }
    if (from == i) return true;
  }
  return false;
}

TEST(PlanMemory, BlocksAliveTogetherNeverOverlap) {
  int reused = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::vector<MemoryBlock> blocks = RandomBlocks(seed);
    MemoryPlan plan = PlanMemory(blocks, kAlignment);
    ASSERT_EQ(plan.offsets.size(), blocks.size());
    int64_t end = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % kAlignment, 0);
      EXPECT_GE(plan.offsets[i], 0);
      end = std::max(end, plan.offsets[i] + Aligned(blocks[i].bytes));
      for (size_t j = i + 1; j < blocks.size(); ++j) {
        const MemoryBlock& a = blocks[i];
        const MemoryBlock& b = blocks[j];
        bool apart = plan.offsets[i] + a.bytes <= plan.offsets[j] ||
                     plan.offsets[j] + b.bytes <= plan.offsets[i];
        if (apart || a.last < b.first || b.last < a.first) continue;
        ASSERT_TRUE(TookPlaceOf(blocks, plan, j, i))
            << "seed " << seed << ": blocks " << i << " and " << j << " share memory";
        EXPECT_EQ(a.last, b.first) << "seed " << seed;
        ++reused;
      }
    }
    EXPECT_EQ(plan.bytes, end) << "seed " << seed;
  }
  EXPECT_GT(reused, 100) << "the random blocks never ask for a place that can be taken";
}

TEST(PlanMemory, NoStepNeedsMoreThanThePlanAndChainsNeedNoMore) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<MemoryBlock> blocks = RandomBlocks(seed);
    for (MemoryBlock& b : blocks) b.in_place_of = -1;
    MemoryPlan plan = PlanMemory(blocks, kAlignment);
    int64_t peak = 0;
    int64_t all = 0;
    for (int step = 0; step < 20; ++step) {
      int64_t alive = 0;
      for (const MemoryBlock& b : blocks) {
        if (b.first <= step && step <= b.last) alive += Aligned(b.bytes);
      }
      peak = std::max(peak, alive);
    }
    for (const MemoryBlock& b : blocks) all += Aligned(b.bytes);
    EXPECT_GE(plan.bytes, peak);
    EXPECT_LE(plan.bytes, all);
  }
  // A chain of equal blocks, each alive for two steps, needs two places.
  std::vector<MemoryBlock> chain;
  for (int i = 0; i < 20; ++i) chain.push_back({.bytes = 640, .first = i, .last = i + 1});
  EXPECT_EQ(PlanMemory(chain, kAlignment).bytes, 2 * 640);
}

// Each at the lowest free offset, the largest first, found by looking at all that were placed.
std::vector<int64_t> FirstFit(const std::vector<MemoryBlock>& blocks) {
  std::vector<size_t> order;
  for (size_t i = 0; i < blocks.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return Aligned(blocks[a].bytes) > Aligned(blocks[b].bytes);
  });
  std::vector<int64_t> offsets(blocks.size(), -1);
  auto free_at = [&](int64_t at, const MemoryBlock& block) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      const MemoryBlock& other = blocks[i];
      bool apart = offsets[i] < 0 || other.last < block.first || block.last < other.first ||
                   offsets[i] + Aligned(other.bytes) <= at ||
                   at + Aligned(block.bytes) <= offsets[i];
      if (!apart) return false;
    }
    return true;
  };
  for (size_t i : order) {
    int64_t at = 0;
    while (!free_at(at, blocks[i])) at += kAlignment;
    offsets[i] = at;
  }
  return offsets;
}

TEST(PlanMemory, EachBlockIsAtTheLowestFreeOffset) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<MemoryBlock> blocks = RandomBlocks(seed);
    for (MemoryBlock& b : blocks) b.in_place_of = -1;
    // Steps far apart are steps like others.
    if (seed % 2 == 0) {
      for (MemoryBlock& b : blocks) b = {b.bytes, 1000000 * b.first, 1000000 * b.last + 7};
    }
    EXPECT_EQ(PlanMemory(blocks, kAlignment).offsets, FirstFit(blocks)) << "seed " << seed;
  }
}

TEST(PlanMemory, ABlockTakesThePlaceOfOneThatEndsWhereItBegins) {
  MemoryPlan plan = PlanMemory({{.bytes = 100, .first = 0, .last = 1},
                                {.bytes = 100, .first = 1, .last = 2, .in_place_of = 0},
                                {.bytes = 100, .first = 2, .last = 3, .in_place_of = 1}});
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(plan.bytes, 128);
}

TEST(PlanMemory, APlaceIsTakenOnlyWhereThatIsSafe) {
  // Of another size.
  EXPECT_EQ(PlanMemory({{.bytes = 100, .first = 0, .last = 1},
                        {.bytes = 99, .first = 1, .last = 2, .in_place_of = 0}})
                .bytes,
            256);
  // Still read afterwards.
  EXPECT_EQ(PlanMemory({{.bytes = 100, .first = 0, .last = 2},
                        {.bytes = 100, .first = 1, .last = 2, .in_place_of = 0}})
                .bytes,
            256);
  // Two want the same place.
  EXPECT_EQ(PlanMemory({{.bytes = 100, .first = 0, .last = 1},
                        {.bytes = 100, .first = 1, .last = 2, .in_place_of = 0},
                        {.bytes = 100, .first = 1, .last = 2, .in_place_of = 0}})
                .bytes,
            256);
}

TEST(PlanMemory, NothingNeedsNothing) {
  EXPECT_EQ(PlanMemory({}).bytes, 0);
  MemoryPlan plan = PlanMemory({{.bytes = 0, .first = 0, .last = 3}});
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_EQ(plan.offsets, std::vector<int64_t>{0});
}

TEST(PlanMemory, IsDeterministic) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    MemoryPlan a = PlanMemory(RandomBlocks(seed));
    MemoryPlan b = PlanMemory(RandomBlocks(seed));
    EXPECT_EQ(a.offsets, b.offsets);
    EXPECT_EQ(a.bytes, b.bytes);
  }
}

}  // namespace
}  // namespace fusion
