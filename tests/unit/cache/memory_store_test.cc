#include "core/cache/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/cache/metered_store.h"
#include "core/cache/tiered_store.h"
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

struct Stack {
  MemoryStore* front;
  MemoryStore* back;
  std::unique_ptr<Store> tiered;
};

Stack MakeStack() {
  auto front = std::make_unique<MemoryStore>(1 << 20, Logger::Silent());
  auto back = std::make_unique<MemoryStore>(1 << 20, Logger::Silent());
  Stack stack{front.get(), back.get(), nullptr};
  stack.tiered = std::make_unique<TieredStore>(std::move(front), std::move(back));
  return stack;
}

TEST(TieredStore, PublishesToBothAndCopiesWhatIsFoundBehind) {
  Stack stack = MakeStack();
  Bundle published = SampleBundle(1);
  ASSERT_TRUE(stack.tiered->PutBundle(published).ok());
  EXPECT_TRUE(stack.front->GetPlan({published.plan->key}));
  EXPECT_TRUE(stack.back->GetPlan({published.plan->key}));

  Bundle behind = SampleBundle(2);
  ASSERT_TRUE(stack.back->PutBundle(behind).ok());
  EXPECT_FALSE(stack.front->GetKernel({behind.kernels[0]->key}));
  EXPECT_TRUE(stack.tiered->GetKernel({behind.kernels[0]->key}));
  EXPECT_TRUE(stack.tiered->GetPlan({behind.plan->key, behind.plan->full_key}));
  EXPECT_TRUE(stack.front->GetKernel({behind.kernels[0]->key}));
  EXPECT_TRUE(stack.front->GetPlan({behind.plan->key}));
  EXPECT_FALSE(stack.tiered->GetPlan({Sha256("absent")}));
  EXPECT_EQ(stack.tiered->Stats().size(), 2u);
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

class FullStore final : public Store {
 public:
  Found<StoredPlan> GetPlan(const EntryKey& /*key*/) override { return {}; }
  Found<KernelArtifact> GetKernel(const EntryKey& /*key*/) override { return {}; }
  std::shared_ptr<const StoredPlan> PeekPlan(const Digest& /*key*/) override { return nullptr; }
  bool HasPlan(const Digest& /*key*/) const override { return false; }
  bool HasKernel(const Digest& key) const override {
    for (const Bundle& bundle : taken) {
      for (const auto& kernel : bundle.kernels) {
        if (kernel->key == key) return true;
      }
    }
    return false;
  }
  bool Touch(const Digest& /*plan*/, const std::vector<Digest>& /*kernels*/) override {
    return false;
  }
  int64_t removals() const override { return 0; }
  absl::Status PutBundle(const Bundle& bundle) override {
    if (on_put) on_put();
    if (full) return ResourceExhausted("full");
    if (refused == bundle.tenant) return ResourceExhausted("no room for ", bundle.tenant);
    taken.push_back(bundle);
    return absl::OkStatus();
  }
  absl::Status CheckWritable() const override {
    return full ? ResourceExhausted("full") : absl::OkStatus();
  }
  PlanPage ListPlansOf(const PlanFilter& /*filter*/, const std::optional<PlanPlace>& /*after*/,
                       size_t /*limit*/) override {
    return {};
  }
  std::vector<StoreStats> Stats() const override { return {}; }
  std::shared_ptr<const KernelArtifact> PeekKernel(const Digest& /*key*/) override {
    return nullptr;
  }
  absl::StatusOr<Forgotten> Forget(const ForgetQuery& query) override {
    if (query.all) taken.clear();
    return Forgotten{};
  }
  int64_t CachedBytes() const override { return 0; }

  std::function<void()> on_put;
  std::atomic<bool> full = true;
  std::string refused = "nobody";  // tenant
  std::vector<Bundle> taken;
};

constexpr Nanoseconds kSoon = std::chrono::milliseconds(1);

// Waits until nothing more is to be written.
bool AllWritten(const TieredStore& store, const Digest& plan) {
  for (int i = 0; i < 10'000 && !store.WhyUnwritten(plan).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return store.WhyUnwritten(plan).empty();
}

TEST(TieredStore, TheFrontRemembersWhatTheDiskCouldNot) {
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()),
                    std::make_unique<FullStore>());
  Bundle bundle = SampleBundle(1);
  EXPECT_EQ(store.PutBundle(bundle).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store.GetPlan({bundle.plan->key, bundle.plan->full_key}));
}

TEST(TieredStore, WhatTheDiskCouldNotTakeIsWrittenOnceItCan) {
  auto back = std::make_unique<FullStore>();
  FullStore* disk = back.get();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(back),
                    kSoon);
  Bundle bundle = SampleBundle(1);
  bundle.tenant = "acme";
  EXPECT_FALSE(store.PutBundle(bundle).ok());
  EXPECT_EQ(store.WhyUnwritten(bundle.plan->key), "full");
  EXPECT_EQ(store.WhyUnwritten(Sha256("another")), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // tries that fail
  EXPECT_EQ(store.WhyUnwritten(bundle.plan->key), "full");
  disk->full = false;
  ASSERT_TRUE(AllWritten(store, bundle.plan->key));
  ASSERT_EQ(disk->taken.size(), 1u);
  EXPECT_EQ(disk->taken[0].plan, bundle.plan);
  EXPECT_EQ(disk->taken[0].kernels, bundle.kernels);
  EXPECT_EQ(disk->taken[0].tenant, "acme");
}

TEST(TieredStore, WhatMemoryHasForgottenMeanwhileIsNotWrittenInPart) {
  auto front = std::make_unique<MemoryStore>(1 << 20, Logger::Silent());
  auto back = std::make_unique<FullStore>();
  MemoryStore* memory = front.get();
  FullStore* disk = back.get();
  TieredStore store(std::move(front), std::move(back), kSoon);
  const Bundle of_kernel = SampleBundle(1);
  const Bundle of_plan = SampleBundle(2);
  for (const Bundle& bundle : {of_kernel, of_plan}) EXPECT_FALSE(store.PutBundle(bundle).ok());
  ASSERT_TRUE(memory->Forget({.kernels = {of_kernel.kernels[0]->key}}).ok());
  ASSERT_TRUE(memory->Forget({.plans = {of_plan.plan->key}}).ok());
  disk->full = false;
  EXPECT_TRUE(AllWritten(store, of_plan.plan->key));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(disk->taken.empty());
  EXPECT_EQ(store.WhyUnwritten(of_kernel.plan->key), "a kernel of it is not in memory any more");
  ASSERT_TRUE(store.PutBundle(of_kernel).ok());  // made anew
  EXPECT_EQ(store.WhyUnwritten(of_kernel.plan->key), "");
}

TEST(TieredStore, WhatIsPublishedTwiceOnAFullDiskIsWrittenWithAllAndForWhoCameFirst) {
  auto back = std::make_unique<FullStore>();
  FullStore* disk = back.get();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(back),
                    kSoon);
  Bundle first = SampleBundle(1);
  first.tenant = "acme";
  Bundle second = {.plan = first.plan, .kernels = SampleBundle(2).kernels};  // by its search
  for (const Bundle& bundle : {first, second}) EXPECT_FALSE(store.PutBundle(bundle).ok());
  disk->full = false;
  ASSERT_TRUE(AllWritten(store, first.plan->key));
  ASSERT_EQ(disk->taken.size(), 1u);
  EXPECT_EQ(disk->taken[0].tenant, "acme");
  EXPECT_EQ(disk->taken[0].kernels.size(), 4u);
}

TEST(TieredStore, WhatIsRefusedForItselfIsNotTriedAgain) {
  auto back = std::make_unique<FullStore>();
  FullStore* disk = back.get();
  disk->full = false;
  disk->refused = "acme";
  std::atomic<int> puts = 0;
  disk->on_put = [&] { ++puts; };
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(back),
                    kSoon);
  Bundle bundle = SampleBundle(1);
  bundle.tenant = "acme";
  EXPECT_FALSE(store.PutBundle(bundle).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(puts, 1);
  EXPECT_EQ(store.WhyUnwritten(bundle.plan->key), "no room for acme");
}

TEST(TieredStore, AnEndTriesALastTime) {
  auto back = std::make_unique<FullStore>();
  FullStore* disk = back.get();
  std::atomic<int> puts = 0;
  disk->on_put = [&] { ++puts; };
  {
    TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(back),
                      std::chrono::hours(1));
    EXPECT_FALSE(store.PutBundle(SampleBundle(1)).ok());
    disk->full = false;
  }
  EXPECT_EQ(puts, 2);
}

TEST(TieredStore, WhatIsForgottenIsNotWrittenLater) {
  auto back = std::make_unique<FullStore>();
  FullStore* disk = back.get();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(back),
                    kSoon);
  const Bundle bundle = SampleBundle(1);
  EXPECT_FALSE(store.PutBundle(bundle).ok());
  ASSERT_TRUE(store.Forget({.all = true}).ok());
  disk->full = false;
  EXPECT_TRUE(AllWritten(store, bundle.plan->key));
  EXPECT_TRUE(disk->taken.empty());
}

// A bundle whose plan also has a kernel of `first`, which its maker found in memory.
Bundle SharingWith(const Bundle& first) {
  Bundle second = SampleBundle(2, 1);
  Plan plan = second.plan->plan;
  plan.kernels[0].key = second.kernels[0]->key;
  plan.kernels[1].key = first.kernels[0]->key;
  second.plan = std::make_shared<StoredPlan>(MakeStoredPlan("shares", plan, 1));
  return second;
}

TEST(TieredStore, APlanIsWrittenWithKernelsThatCouldNotBeWrittenBefore) {
  auto back = std::make_unique<FullStore>();
  FullStore* disk = back.get();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(back));
  const Bundle first = SampleBundle(1);
  EXPECT_FALSE(store.PutBundle(first).ok());
  disk->full = false;
  const Bundle second = SharingWith(first);
  for (size_t kernels : {size_t{2}, size_t{1}}) {  // once
    ASSERT_TRUE(store.PutBundle(second).ok());
    ASSERT_EQ(disk->taken.back().kernels.size(), kernels);
  }
  EXPECT_EQ(disk->taken.front().kernels[1], first.kernels[0]);
}

// The first's kernel, which is in front alone, and is forgotten while it goes behind with a plan
// that shares it.
TEST(TieredStore, WhatIsForgottenDoesNotComeBackWithAPlanThatSharesIt) {
  auto back = std::make_unique<FullStore>();
  FullStore* disk = back.get();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(back));
  const Bundle first = SampleBundle(1);
  EXPECT_FALSE(store.PutBundle(first).ok());
  disk->full = false;
  const Bundle second = SharingWith(first);
  std::thread forgets;
  disk->on_put = [&] {
    forgets = std::thread([&] { EXPECT_TRUE(store.Forget({.all = true}).ok()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits, or would be done
  };
  ASSERT_TRUE(store.PutBundle(second).ok());
  forgets.join();
  EXPECT_FALSE(disk->HasKernel(first.kernels[0]->key));
  EXPECT_FALSE(store.HasPlan(second.plan->key));
}

TEST(TieredStore, WhatIsForgottenInFrontAloneCountsAsRemoved) {
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()),
                    std::make_unique<FullStore>());
  const Bundle bundle = SampleBundle(1);
  store.PutBundle(bundle).IgnoreError();
  const int64_t before = store.removals();
  ASSERT_TRUE(store.Forget({.all = true}).ok());
  EXPECT_FALSE(store.HasPlan(bundle.plan->key));
  EXPECT_GT(store.removals(), before);
}

TEST(TieredStore, WhatIsForgottenWhileItIsWrittenIsNotLeftInFront) {
  // Behind, everything is forgotten just after it was written, and before the front has it.
  auto back = std::make_unique<FullStore>();
  FullStore* full = back.get();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(back));
  full->on_put = [&] { EXPECT_TRUE(store.Forget({.all = true}).ok()); };
  const Bundle bundle = SampleBundle(1);
  store.PutBundle(bundle).IgnoreError();
  EXPECT_FALSE(store.GetPlan({bundle.plan->key}));
  for (const auto& kernel : bundle.kernels) EXPECT_FALSE(store.GetKernel({kernel->key}));
}

TEST(TieredStore, WhatIsLookedAtStaysWhereItIs) {
  auto front = std::make_unique<MemoryStore>(1 << 20, Logger::Silent());
  auto back = std::make_unique<MemoryStore>(1 << 20, Logger::Silent());
  Bundle bundle = SampleBundle(1);
  EXPECT_TRUE(back->PutBundle(bundle).ok());
  MemoryStore* memory = front.get();
  TieredStore store(std::move(front), std::move(back));
  EXPECT_TRUE(store.HasPlan(bundle.plan->key));
  EXPECT_EQ(store.PeekPlan(bundle.plan->key), bundle.plan);
  EXPECT_FALSE(memory->HasPlan(bundle.plan->key));
  EXPECT_EQ(store.PeekPlan(Sha256("absent")), nullptr);
  EXPECT_TRUE(store.GetPlan({bundle.plan->key}));
  EXPECT_TRUE(memory->HasPlan(bundle.plan->key)) << "that was a use";
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
