#include "core/cache/rocks/eviction_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/clock.h"

namespace fusion {
namespace {

EntryId Kernel(int i) { return {EntryKind::kKernel, Sha256(StrCat(i))}; }

EntryFacts Facts(int64_t bytes, double cost_ms, int64_t last_use_ms) {
  return {.bytes = bytes, .cost_ms = cost_ms, .last_use_ms = last_use_ms, .payload = {}};
}

std::vector<EntryId> Ids(const std::vector<EvictionIndex::Entry>& entries) {
  std::vector<EntryId> ids;
  for (const auto& [id, facts] : entries) ids.push_back(id);
  return ids;
}

TEST(EvictionIndex, OldOnesGoFirst) {
  EvictionIndex index;
  for (int i = 0; i < 100; ++i) index.Add(Kernel(i), Facts(10, 1, 1000 + i));
  index.Touch(Kernel(0), 5000);
  EXPECT_THAT(index.MakeRoom(0, 1000, {}), testing::IsEmpty());
  std::vector<EntryId> victims = Ids(index.MakeRoom(10, 1000, {}));
  // 900 bytes are left for everything, the new 10 included.
  EXPECT_EQ(victims.size(), 11u);
  EXPECT_EQ(index.bytes(), 890);
  EXPECT_THAT(victims, testing::Not(testing::Contains(Kernel(0))));
  EXPECT_THAT(victims, testing::Contains(Kernel(1)));
  EXPECT_THAT(victims, testing::Not(testing::Contains(Kernel(99))));
}

TEST(EvictionIndex, OfALargeStoreAFewHundredGoAtATime) {
  EvictionIndex index;
  for (int i = 0; i < 10'000; ++i) index.Add(Kernel(i), Facts(10, 1, i));
  EXPECT_EQ(index.MakeRoom(10, 100'000, {}).size(), 256u);
  EXPECT_THAT(index.MakeRoom(10, 100'000, {}), testing::IsEmpty()) << "there is room still";
  EXPECT_EQ(index.MakeRoom(10'000, 100'000, {}).size(), 744u) << "what is needed";
}

TEST(EvictionIndex, AmongTheOldTheCheapestPerByteGoesFirst) {
  EvictionIndex index;
  index.Add(Kernel(0), Facts(100, 90, 1));  // oldest, but dear
  index.Add(Kernel(1), Facts(100, 30, 2));  // cheap
  index.Add(Kernel(2), Facts(100, 60, 3));
  EXPECT_THAT(Ids(index.MakeRoom(0, 250, {})), testing::ElementsAre(Kernel(1)));
}

TEST(EvictionIndex, TheDearestGoesToo) {
  EvictionIndex index;
  index.Add(Kernel(-1), Facts(100, 100, 1));  // a hundred times as dear as the others
  index.Add(Kernel(-2), Facts(100, 1, 1));
  std::vector<EntryId> gone;
  int64_t now = 10;
  for (int i = 0; i < 10'000 && index.Find(Kernel(-1)) != nullptr; ++i, now += 1000) {
    index.Add(Kernel(i), Facts(100, 1, now));
    for (const EntryId& id : Ids(index.MakeRoom(0, 5000, {}))) gone.push_back(id);
  }
  EXPECT_EQ(gone.front(), Kernel(-2));
  EXPECT_GT(gone.size(), 100u) << "it stayed long";
  EXPECT_EQ(gone.back(), Kernel(-1)) << "but not for ever";
}

TEST(EvictionIndex, WhatIsKeptStaysEvenAboveTheBudget) {
  EvictionIndex index;
  index.Add(Kernel(0), Facts(100, 1, 1));
  index.Add(Kernel(1), Facts(100, 1, 2));
  EXPECT_THAT(Ids(index.MakeRoom(500, 300, {Kernel(0)})), testing::ElementsAre(Kernel(1)));
  EXPECT_NE(index.Find(Kernel(0)), nullptr);
}

TEST(EvictionIndex, ATenantsBudgetPutsOutItsOwnEntriesOnly) {
  EvictionIndex index;
  for (int i = 0; i < 20; ++i) {
    EntryFacts facts = Facts(10, 1, i);
    facts.tenant = i % 2 == 0 ? "even" : "odd";
    index.Add(Kernel(i), facts);
  }
  EXPECT_THAT(index.MakeTenantRoom("even", 0, 100, {}), testing::IsEmpty());
  // 90 bytes are left for the tenant, the new 10 included: two of its ten go, the oldest.
  EXPECT_THAT(Ids(index.MakeTenantRoom("even", 10, 100, {})),
              testing::ElementsAre(Kernel(0), Kernel(2)));
  EXPECT_EQ(index.tenant_bytes().at("odd"), 100);
  EXPECT_EQ(index.tenant_bytes().at("even"), 80);
  EXPECT_THAT(index.MakeTenantRoom("new", 1000, 100, {}), testing::IsEmpty()) << "it has nothing";
}

TEST(EvictionIndex, RoomForASmallTenantIsNotLookedForAmongTheEntriesOfAll) {
  EvictionIndex index;
  for (int i = 0; i < 100'000; ++i) {
    EntryFacts facts = Facts(10, 1, i);
    facts.tenant = "large";
    index.Add(Kernel(i), facts);
  }
  for (int i = 0; i < 500; ++i) {
    EntryFacts facts = Facts(10, 1, 1'000'000 + i);  // younger than all others
    facts.tenant = "small";
    index.Add(Kernel(-1 - i), facts);
  }
  const Nanoseconds start = Clock::Real().Now();
  EXPECT_EQ(index.MakeTenantRoom("small", 5000, 5000, {}).size(), 500u) << "its last one as well";
  // A walk over the others takes some 20 ms for each that goes.
  EXPECT_LT(Clock::Real().Now() - start, std::chrono::seconds(1));
  EXPECT_FALSE(index.tenant_bytes().contains("small"));
  EXPECT_EQ(index.tenant_bytes().at("large"), 1'000'000);
}

TEST(EvictionIndex, WhatIsAddedWhenAStoreIsOpenedGoesAsIfItHadBeenAddedOneByOne) {
  EvictionIndex one_by_one, opened;
  std::map<EntryId, EntryFacts> entries;
  for (int i = 0; i < 200; ++i) {
    const EntryKind kind = i % 3 == 0 ? EntryKind::kPlan : EntryKind::kKernel;
    entries[{kind, Sha256(StrCat(i))}] = {.bytes = 100,
                                          .cost_ms = 1.0 + i % 7,
                                          .last_use_ms = 1000 - i / 5 * 3,
                                          .tenant = i % 2 == 0 ? "a" : "b"};
  }
  const auto pinned = std::prev(entries.end())->first.key;  // a kernel
  const Digest plan = entries.begin()->first.key;
  for (EvictionIndex* index : {&one_by_one, &opened}) index->Pin(plan, {pinned});
  for (const auto& [id, facts] : entries) {
    one_by_one.Add(id, facts);
    opened.AddInOrder(id, facts);
  }
  opened.FinishAdding();
  EXPECT_EQ(opened.bytes(), one_by_one.bytes());
  EXPECT_EQ(opened.pinned_bytes(), 200);
  EXPECT_EQ(opened.tenant_bytes(), one_by_one.tenant_bytes());
  for (int i = 0; i < 20; ++i) {
    auto gone = opened.MakeRoom(1000, opened.bytes(), {});
    auto also = one_by_one.MakeRoom(1000, one_by_one.bytes(), {});
    ASSERT_EQ(gone.size(), also.size());
    for (size_t k = 0; k < gone.size(); ++k) EXPECT_EQ(gone[k].first, also[k].first) << i;
    gone = opened.MakeTenantRoom("a", 300, opened.TenantBytes("a"), {});
    also = one_by_one.MakeTenantRoom("a", 300, one_by_one.TenantBytes("a"), {});
    ASSERT_EQ(gone.size(), also.size());
    for (size_t k = 0; k < gone.size(); ++k) EXPECT_EQ(gone[k].first, also[k].first) << i;
  }
}

TEST(EvictionIndex, ATenantsPinnedEntriesStayAndGoOnceTheyAreUnpinned) {
  EvictionIndex index;
  for (int i = 0; i < 4; ++i) {
    EntryFacts facts = Facts(10, 1, i);
    facts.tenant = "shop";
    index.Add(Kernel(i), facts);
  }
  index.Pin(Sha256("plan"), {Kernel(0).key});
  index.Touch(Kernel(0), 1);
  EXPECT_THAT(Ids(index.MakeTenantRoom("shop", 40, 40, {})),
              testing::ElementsAre(Kernel(1), Kernel(2), Kernel(3)));
  index.Unpin(Sha256("plan"));
  EXPECT_THAT(Ids(index.MakeTenantRoom("shop", 40, 40, {})), testing::ElementsAre(Kernel(0)));
}

TEST(EvictionIndex, CountsAndTouchedEntries) {
  EvictionIndex index;
  index.Add({EntryKind::kPlan, Sha256("p")}, Facts(7, 1, 1));
  index.Add(Kernel(0), Facts(3, 1, 1));
  index.Add(Kernel(0), Facts(5, 1, 2));
  EXPECT_EQ(index.bytes(), 12);
  EXPECT_EQ(index.plans(), 1);
  EXPECT_EQ(index.kernels(), 1);
  index.Touch(Kernel(0), 9);
  index.Touch(Kernel(42), 9);
  std::vector<EvictionIndex::Entry> touched = index.TakeTouched(10);
  ASSERT_EQ(touched.size(), 1u);
  EXPECT_EQ(touched[0].second.last_use_ms, 9);
  EXPECT_THAT(index.TakeTouched(10), testing::IsEmpty());
  EXPECT_TRUE(index.Remove(Kernel(0)));
  EXPECT_FALSE(index.Remove(Kernel(0)));
  EXPECT_EQ(index.bytes(), 7);
}

}  // namespace
}  // namespace fusion
