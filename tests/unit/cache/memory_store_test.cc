#include "core/cache/memory/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/cache/metered_store.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/stored_bundle.h"

namespace fusion {
namespace {

using testing::_;

TEST(LruMap, ForgetsWhatWasUsedLongestAgo) {
  LruMap<std::string, int> map(10);
  map.Insert("a", 1, 4);
  map.Insert("b", 2, 4);
  EXPECT_EQ(*map.Find("a"), 1);
  auto evicted = map.Insert("c", 3, 4);
  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].first, "b");
  EXPECT_EQ(map.cost(), 8);
  EXPECT_EQ(map.Find("b"), nullptr);
}

TEST(LruMap, ReplacingCountsOnceAndGiantsAreNotKept) {
  LruMap<std::string, int> map(10);
  map.Insert("a", 1, 6);
  map.Insert("a", 2, 7);
  EXPECT_EQ(map.cost(), 7);
  EXPECT_TRUE(map.Insert("giant", 3, 11).empty());
  EXPECT_EQ(map.Find("giant"), nullptr);
  EXPECT_EQ(*map.Find("a"), 2);
}

TEST(LruMap, ALargeEntryPushesNothingOut) {
  LruMap<std::string, int> map(/*budget=*/100, LargestEntryBytes(100));
  map.Insert("a", 1, 25);
  map.Insert("b", 2, 25);
  EXPECT_TRUE(map.Insert("large", 3, 26).empty());
  EXPECT_EQ(map.Find("large"), nullptr);
  EXPECT_EQ(*map.Find("a"), 1);
  map.Insert("a", 4, 26);  // what it was is not given any more
  EXPECT_EQ(map.Find("a"), nullptr);
  EXPECT_EQ(map.cost(), 25);
}

TEST(LruMap, TrimmingKeepsWhatWasUsedLast) {
  LruMap<std::string, int> map(/*budget=*/100);
  for (const char* key : {"a", "b", "c", "d"}) map.Insert(key, 1, 20);
  EXPECT_NE(map.Find("a"), nullptr);
  auto evicted = map.Trim(45);
  ASSERT_EQ(evicted.size(), 2u);
  EXPECT_EQ(evicted[0].first, "b");
  EXPECT_EQ(evicted[1].first, "c");
  EXPECT_EQ(map.cost(), 40);
  EXPECT_TRUE(map.Contains("a") && map.Contains("d"));
  EXPECT_TRUE(map.Trim(45).empty());
  EXPECT_EQ(map.MakeRoom().size(), 1u) << "of 100, 25 stay";
  EXPECT_TRUE(map.Contains("a"));
  EXPECT_EQ(map.Trim(0).size(), 1u);
  EXPECT_EQ(map.cost(), 0);
}

TEST(MemoryStore, GivesBackWhatWasPublished) {
  MemoryStore store(1 << 20, Logger::Silent());
  Bundle bundle = SampleBundle(1);
  ASSERT_TRUE(store.PutBundle(bundle).ok());
  Found<StoredPlan> plan = store.GetPlan({bundle.plan->key, bundle.plan->full_key});
  EXPECT_EQ(plan.value, bundle.plan);
  EXPECT_EQ(plan.tier, Tier::kMemory);
  EXPECT_EQ(store.GetKernel({bundle.kernels[1]->key}).value, bundle.kernels[1]);
  EXPECT_FALSE(store.GetKernel({bundle.plan->key}));
  StoreStats stats = store.Stats()[0];
  EXPECT_EQ(stats.plans, 1);
  EXPECT_EQ(stats.kernels, 2);
  EXPECT_GT(stats.bytes, 2000);
}

TEST(MemoryStore, AnotherFullKeyUnderTheSameDigestIsAMiss) {
  CapturingLogger logger;
  MemoryStore store(1 << 20, logger);
  Bundle bundle = SampleBundle(1);
  ASSERT_TRUE(store.PutBundle(bundle).ok());
  EXPECT_FALSE(store.GetPlan({bundle.plan->key, "a collision"}));
  EXPECT_EQ(logger.LinesWith("full key differs").size(), 1u);
  EXPECT_EQ(store.Stats()[0].dropped, 1);
  EXPECT_EQ(store.Stats()[0].plans, 0);
  EXPECT_FALSE(store.GetPlan({bundle.plan->key}));
}

TEST(MemoryStore, StaysWithinItsBudget) {
  MemoryStore store(20000, Logger::Silent());
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(store.PutBundle(SampleBundle(i)).ok());
  StoreStats stats = store.Stats()[0];
  EXPECT_LE(stats.bytes, 20000);
  EXPECT_GT(stats.evicted, 100);
  EXPECT_EQ(stats.plans + stats.kernels + stats.evicted, 150);
  EXPECT_TRUE(store.GetPlan({SampleBundle(49).plan->key}));
  EXPECT_FALSE(store.GetPlan({SampleBundle(0).plan->key}));
}

TEST(MemoryStore, MakingRoomLeavesAQuarterTheLatestOnes) {
  MemoryStore store(100'000, Logger::Silent());
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(store.PutBundle(SampleBundle(i)).ok());
  const StoreStats before = store.Stats()[0];
  ASSERT_GT(before.bytes, 50'000);
  const int64_t removals = store.removals();
  store.TrimMemory();
  const StoreStats stats = store.Stats()[0];
  EXPECT_GT(stats.bytes, 0);
  EXPECT_LE(stats.bytes, 25'000);
  EXPECT_EQ(store.CachedBytes(), stats.bytes);
  const int64_t gone = before.plans + before.kernels - stats.plans - stats.kernels;
  EXPECT_EQ(stats.evicted - before.evicted, gone);
  EXPECT_EQ(store.removals() - removals, gone) << "what is derived from entries is compared again";
  EXPECT_EQ(store.ListPlansOf({}, std::nullopt, 100).plans.size(),
            static_cast<size_t>(stats.plans));
  EXPECT_TRUE(store.GetPlan({SampleBundle(24).plan->key}));
  EXPECT_FALSE(store.GetPlan({SampleBundle(0).plan->key}));
}

TEST(MemoryStore, BundlesThatContradictThemselvesAreRefused) {
  MemoryStore store(1 << 20, Logger::Silent());
  auto kernel = std::make_shared<KernelArtifact>(SampleKernel());
  kernel->binary += "x";
  EXPECT_EQ(store.PutBundle({nullptr, {kernel}}).code(), absl::StatusCode::kInternal);
  auto plan = std::make_shared<StoredPlan>(MakeStoredPlan("g", SamplePlan(), 1));
  plan->full_key = "h";
  EXPECT_EQ(store.PutBundle({plan, {}}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(store.Stats()[0].write_failures, 2);
}

TEST(MemoryStore, ManyThreads) {
  MemoryStore store(100000, Logger::Silent());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Bundle bundle = SampleBundle((i + t) % 10, 1);
        EXPECT_TRUE(store.PutBundle(bundle).ok());
        Found<KernelArtifact> kernel = store.GetKernel({bundle.kernels[0]->key});
        if (kernel) {
          EXPECT_EQ(kernel.value->binary, bundle.kernels[0]->binary);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(MemoryStore, WhatIsForgottenCountsAsRemoved) {
  MemoryStore store(1 << 20, Logger::Silent());
  const Bundle bundle = SampleBundle(1);
  for (const ForgetQuery& query :
       {ForgetQuery{.all = true}, ForgetQuery{.plans = {bundle.plan->key}},
        ForgetQuery{.kernels = {bundle.kernels[0]->key}}}) {
    ASSERT_TRUE(store.PutBundle(bundle).ok());
    const int64_t before = store.removals();
    ASSERT_TRUE(store.Forget(query).ok());
    EXPECT_GT(store.removals(), before);
  }
}

TEST(MemoryStore, PlansAreListedNewestFirstPageByPage) {
  MemoryStore store(int64_t{1} << 20, Logger::Silent());
  std::vector<Digest> newest_first;
  for (int i = 0; i < 5; ++i) {
    Plan plan = SamplePlan();
    Bundle bundle = SampleBundle(i);
    plan.kernels[0].key = bundle.kernels[0]->key;
    bundle.plan = std::make_shared<StoredPlan>(MakeStoredPlan(StrCat("graph ", i), plan, i / 2));
    ASSERT_TRUE(store.PutBundle(bundle).ok());
    newest_first.insert(newest_first.begin(), bundle.plan->key);
  }
  // Of the same time, by key.
  if (newest_first[2] < newest_first[1]) std::swap(newest_first[1], newest_first[2]);
  if (newest_first[4] < newest_first[3]) std::swap(newest_first[3], newest_first[4]);
  std::vector<Digest> listed;
  std::optional<PlanPlace> after;
  do {
    PlanPage page = store.ListPlans(after, 2);
    ASSERT_LE(page.plans.size(), 2u);
    for (const PlanSummary& plan : page.plans) {
      listed.push_back(plan.plan_key);
      EXPECT_EQ(plan.distinct_kernels, 2);
      EXPECT_EQ(plan.compiled_kernels, 1) << "the other one is nowhere";
      EXPECT_EQ(plan.nodes, SamplePlan().nodes);
    }
    after = page.last;
  } while (after.has_value());
  EXPECT_EQ(listed, newest_first);
}

TEST(MemoryStore, OfFilteredPlansNoneIsLeftOutOrListedTwice) {
  MemoryStore store(int64_t{1} << 22, Logger::Silent());
  std::vector<Digest> wanted;
  for (int i = 0; i < 50; ++i) {
    auto plan = std::make_shared<StoredPlan>(
        MakeStoredPlan(StrCat(i % 7 == 3 ? "ours " : "others' ", i), SamplePlan(), i));
    ASSERT_TRUE(store.PutBundle({.plan = plan, .kernels = {}}).ok());
    if (i % 7 == 3) wanted.insert(wanted.begin(), plan->key);
  }
  const PlanFilter ours{.shows = [](std::string_view key) { return key.starts_with("ours"); }};
  for (size_t limit : {1, 2, 7, 100}) {
    std::vector<Digest> listed;
    std::optional<PlanPlace> after;
    do {
      PlanPage page = store.ListPlansOf(ours, after, limit);
      ASSERT_LE(page.plans.size(), limit);
      for (const PlanSummary& plan : page.plans) listed.push_back(plan.plan_key);
      after = page.last;
    } while (after.has_value());
    EXPECT_EQ(listed, wanted) << limit;
  }
}

TEST(PlacesAfter, AFewThousandAreLookedAtAtATime) {
  PlanPlaces places;
  for (int i = 0; i < 10'000; ++i) places.insert({i, Sha256(StrCat(i))});
  auto is_wanted = [](const PlanPlace& place) { return place.created_unix_ms % 9'000 == 5; };
  std::vector<int64_t> found;
  int pages = 0;
  std::optional<PlanPlace> after;
  do {
    const PlacePage page = PlacesAfter(places, after, /*limit=*/10, is_wanted);
    for (const PlanPlace& place : page.places) found.push_back(place.created_unix_ms);
    after = page.last;
    ++pages;
  } while (after.has_value());
  EXPECT_EQ(found, (std::vector<int64_t>{9'005, 5})) << "newest first";
  EXPECT_EQ(pages, 3) << "of 4096";
  EXPECT_EQ(PlacesAfter({}, std::nullopt, 10, is_wanted).last, std::nullopt);
}

TEST(MemoryStore, ReplacedAndEvictedPlansAreNotListed) {
  MemoryStore store(int64_t{64} << 10, Logger::Silent());
  for (int64_t created : {1, 2}) {
    auto plan = std::make_shared<StoredPlan>(MakeStoredPlan("graph", SamplePlan(), created));
    ASSERT_TRUE(store.PutBundle({.plan = plan, .kernels = {}}).ok());
  }
  PlanPage page = store.ListPlans(std::nullopt, 10);
  ASSERT_EQ(page.plans.size(), 1u);
  EXPECT_EQ(page.plans[0].created_unix_ms, 2);
  EXPECT_EQ(store.Stats()[0].plans, 1);
  for (int i = 0; i < 200; ++i) {
    auto plan = std::make_shared<StoredPlan>(MakeStoredPlan(StrCat(i), SamplePlan(), i + 3));
    ASSERT_TRUE(store.PutBundle({.plan = plan, .kernels = {}}).ok());
  }
  page = store.ListPlans(std::nullopt, 1000);
  EXPECT_EQ(static_cast<int64_t>(page.plans.size()), store.Stats()[0].plans);
  EXPECT_GT(store.Stats()[0].evicted, 0);
}

class MockObserver : public StoreObserver {
 public:
  MOCK_METHOD(void, OnGet, (EntryKind kind, Tier tier, Nanoseconds took), (override));
  MOCK_METHOD(void, OnPut, (const absl::Status& status, Nanoseconds took), (override));
};

TEST(MeteredStore, ReportsEveryUse) {
  MockObserver observer;
  MeteredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), observer);
  Bundle bundle = SampleBundle(1);
  EXPECT_CALL(observer, OnPut(absl::OkStatus(), _));
  EXPECT_CALL(observer, OnGet(EntryKind::kPlan, Tier::kMemory, _));
  EXPECT_CALL(observer, OnGet(EntryKind::kKernel, Tier::kNone, _));
  ASSERT_TRUE(store.PutBundle(bundle).ok());
  EXPECT_TRUE(store.GetPlan({bundle.plan->key}));
  EXPECT_NE(store.PeekPlan(bundle.plan->key), nullptr) << "a look is not counted";
  EXPECT_FALSE(store.GetKernel({Sha256("absent")}));
}

}  // namespace
}  // namespace fusion
