// Schemas, pins, tenants, and what an operator does with a store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/files/file.h"
#include "core/cache/memory/memory_store.h"
#include "core/cache/rocks/rocks_database.h"
#include "core/cache/rocks/rocks_schema.h"
#include "core/cache/rocks/rocks_store.h"
#include "core/cache/tiered_store.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_clock.h"
#include "tests/support/rocks_raw.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class RocksUpkeepTest : public testing::Test {
 protected:
  RocksUpkeepTest() : parent_(TempDir::Create(testing::TempDir(), "rocks-upkeep-").value()) {
    options_.dir = parent_.path() + "/store";
    options_.min_free_bytes = 0;
  }

  absl::StatusOr<std::unique_ptr<RocksStore>> TryOpen() {
    return RocksStore::Open(options_, logger_, clock_);
  }
  std::unique_ptr<RocksStore> Open() {
    absl::StatusOr<std::unique_ptr<RocksStore>> store = TryOpen();
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  // A plan of two kernels of its own.
  static Bundle MakeBundle(int seed, size_t binary_bytes = 20000) {
    Bundle bundle;
    Plan plan = SamplePlan();
    for (int i = 0; i < 2; ++i) {
      bundle.kernels.push_back(
          std::make_shared<KernelArtifact>(SampleKernel(seed * 100 + i, binary_bytes)));
      plan.kernels[static_cast<size_t>(i)].key = bundle.kernels.back()->key;
    }
    Plan variant = plan;
    variant.variants.clear();
    variant.samples.clear();
    variant.decisions.clear();
    variant.candidates = 0;
    variant.frontier.clear();
    variant.search = {};
    plan.variants[0].plan = std::make_shared<const Plan>(std::move(variant));
    bundle.plan =
        std::make_shared<StoredPlan>(MakeStoredPlan(StrCat("graph ", seed), plan, 1000 + seed));
    return bundle;
  }

  TempDir parent_;
  RocksStoreOptions options_;
  CapturingLogger logger_;
  FakeClock clock_;
};

TEST_F(RocksUpkeepTest, AStoreOfSchema1IsMigratedAndNothingIsLost) {
  std::vector<Bundle> bundles;
  for (int i = 0; i < 5; ++i) bundles.push_back(MakeBundle(i));
  int64_t bytes = 0;
  {
    auto store = Open();
    for (const Bundle& bundle : bundles) ASSERT_TRUE(store->PutBundle(bundle).ok());
    bytes = store->Stats()[0].bytes;
  }
  MakeSchema1(options_.dir);
  for (int opening = 0; opening < 2; ++opening) {
    auto store = Open();
    EXPECT_EQ(store->Facts().schema_version, kSchemaVersion);
    EXPECT_FALSE(store->started_empty_after_damage());
    EXPECT_EQ(store->Stats()[0].plans, 5);
    EXPECT_EQ(store->Stats()[0].kernels, 10);
    EXPECT_EQ(store->Stats()[0].bytes, bytes);
    EXPECT_EQ(store->TenantBytes(), (std::map<std::string, int64_t>{{"", bytes}}));
    for (const Bundle& bundle : bundles) {
      Found<StoredPlan> plan = store->GetPlan({bundle.plan->key, bundle.plan->full_key});
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan.value->plan_bytes, bundle.plan->plan_bytes);
      EXPECT_TRUE(store->GetKernel({bundle.kernels[1]->key}));
    }
    EXPECT_EQ(store->ListPlans(std::nullopt, 10).plans.size(), 5u);
  }
  EXPECT_EQ(logger_.LinesWith("store_migrated").size(), 1u) << "the second opening had no work";
}

TEST_F(RocksUpkeepTest, AMigrationThatWasKilledIsFinished) {
  ASSERT_TRUE(Open()->PutBundle(MakeBundle(1)).ok());
  // All facts are of schema 2 already, but not what the version says.
  WithRawDatabase(options_.dir, [](rocksdb::DB* db, auto& families) {
    ASSERT_TRUE(db->Put({}, families["meta"], "schema", "1").ok());
  });
  EXPECT_EQ(Open()->Stats()[0].kernels, 2);
}

TEST_F(RocksUpkeepTest, AStoreOfANewerServerIsRefusedAndStaysWhereItIs) {
  Bundle bundle = MakeBundle(1);
  ASSERT_TRUE(Open()->PutBundle(bundle).ok());
  for (const char* family : {"", "of_the_future"}) {
    WithRawDatabase(
        options_.dir,
        [](rocksdb::DB* db, auto& families) {
          ASSERT_TRUE(db->Put({}, families["meta"], "schema", "7").ok());
        },
        family);
    absl::Status refused = TryOpen().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(
        std::string(Message(refused)),
        HasSubstr(StrCat("schema version 7, written by a newer server; this one reads 1 to ",
                         kSchemaVersion)));
  }
  EXPECT_EQ(logger_.LinesWith("store_set_aside").size(), 0u);
  WithRawDatabase(options_.dir, [&](rocksdb::DB* db, auto& families) {
    std::string value;
    EXPECT_TRUE(db->Get({}, families["plans"],
                        {BytesOf(bundle.plan->key).data(), BytesOf(bundle.plan->key).size()},
                        &value)
                    .ok());
  });
}

TEST_F(RocksUpkeepTest, AVersionThatIsNoneIsDamage) {
  ASSERT_TRUE(Open()->PutBundle(MakeBundle(1)).ok());
  WithRawDatabase(options_.dir, [](rocksdb::DB* db, auto& families) {
    ASSERT_TRUE(db->Put({}, families["meta"], "schema", "one").ok());
  });
  auto store = Open();
  EXPECT_TRUE(store->Facts().started_empty);
  EXPECT_THAT(store->Facts().set_aside, HasSubstr(options_.dir + ".corrupt-"));
  EXPECT_TRUE(std::filesystem::exists(store->Facts().set_aside));
}

TEST_F(RocksUpkeepTest, PinnedPlansAndTheirKernelsOutliveEverythingElse) {
  options_.budget_bytes = 1 << 20;
  Bundle pinned = MakeBundle(0);
  {
    auto store = Open();
    ASSERT_TRUE(store->PutBundle(pinned).ok());
    absl::StatusOr<PinOutcome> outcome = store->SetPinned({pinned.plan->key}, true);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->changed, 1);
    EXPECT_EQ(outcome->pinned_plans, 1);
    EXPECT_GT(outcome->pinned_bytes, 40000);
    EXPECT_EQ(store->SetPinned({pinned.plan->key}, true)->changed, 0);
  }
  auto store = Open();
  for (int i = 1; i < 100; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_TRUE(store->PutBundle(MakeBundle(i)).ok());
  }
  EXPECT_GT(store->Stats()[0].evicted, 100);
  EXPECT_LE(store->Stats()[0].bytes, options_.budget_bytes);
  EXPECT_EQ(store->Stats()[0].pinned_plans, 1);
  EXPECT_TRUE(store->GetPlan({pinned.plan->key}));
  for (const auto& kernel : pinned.kernels) EXPECT_TRUE(store->GetKernel({kernel->key}));
  PlanPage page = store->ListPlans(std::nullopt, 1000);
  EXPECT_TRUE(page.plans.back().pinned);
  EXPECT_FALSE(page.plans.front().pinned);

  EXPECT_EQ(store->SetPinned({pinned.plan->key}, false)->changed, 1);
  EXPECT_EQ(store->Stats()[0].pinned_bytes, 0);
  for (int i = 100; i < 200; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_TRUE(store->PutBundle(MakeBundle(i)).ok());
  }
  EXPECT_FALSE(store->GetKernel({pinned.kernels[0]->key})) << "it went like any other";
}

// A bundle whose plan also has a kernel of `other`, which its maker found stored.
Bundle Sharing(const Bundle& other, Bundle bundle) {
  Plan plan = bundle.plan->plan;
  plan.variants.clear();
  plan.kernels[1].key = other.kernels[0]->key;
  bundle.kernels.pop_back();
  bundle.plan = std::make_shared<StoredPlan>(MakeStoredPlan("shares", plan, 1));
  return bundle;
}

TEST_F(RocksUpkeepTest, WhatAPlanSharesDoesNotGoForIt) {
  options_.budget_bytes = 100 << 10;
  auto store = Open();
  const Bundle first = MakeBundle(0);
  ASSERT_TRUE(store->PutBundle(first).ok());
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(store->PutBundle(MakeBundle(1)).ok());
  ASSERT_EQ(store->Stats()[0].evicted, 0);
  clock_.Advance(std::chrono::seconds(1));
  const Bundle sharing = Sharing(first, MakeBundle(2, 40000));
  ASSERT_TRUE(store->PutBundle(sharing).ok());
  EXPECT_GT(store->Stats()[0].evicted, 0);
  EXPECT_TRUE(store->HasPlan(sharing.plan->key));
  EXPECT_TRUE(store->HasKernel(first.kernels[0]->key)) << "it was used longest ago";
}

TEST_F(RocksUpkeepTest, WhatIsPinnedIsWrittenWithKernelsThatAreInMemoryAlone) {
  std::unique_ptr<Store> disk = Open();
  Store* behind = disk.get();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(disk));
  const Bundle bundle = MakeBundle(1);
  ASSERT_TRUE(store.PutBundle(bundle).ok());
  const Digest gone = bundle.kernels[0]->key;
  ASSERT_TRUE(behind->Forget({.kernels = {gone}}).ok());  // as for want of room
  EXPECT_EQ(store.SetPinned({bundle.plan->key}, true)->missing_kernels, 0);
  EXPECT_TRUE(behind->HasKernel(gone));
  // Where it is nowhere that is said, and it stays once it is made again.
  ASSERT_TRUE(store.Forget({.kernels = {gone}}).ok());
  absl::StatusOr<PinOutcome> now = store.SetPinned({bundle.plan->key}, true);
  EXPECT_EQ(now->missing_kernels, 1);
  const int64_t lacking = now->pinned_bytes;
  ASSERT_TRUE(store.PutBundle(bundle).ok());
  now = store.SetPinned({bundle.plan->key}, true);
  EXPECT_EQ(now->missing_kernels, 0);
  EXPECT_GT(now->pinned_bytes, lacking);
}

TEST_F(RocksUpkeepTest, APinWritesWhatMemoryHasOfAPlanThatTheDiskCouldNotTake) {
  std::atomic<int64_t> free = 1000;
  options_.min_free_bytes = 1 << 20;
  options_.free_bytes = [&free](const std::string&) -> absl::StatusOr<int64_t> { return free; };
  std::unique_ptr<Store> disk = Open();
  Store* behind = disk.get();
  auto memory = std::make_unique<MemoryStore>(1 << 20, Logger::Silent());
  MemoryStore* front = memory.get();
  TieredStore store(std::move(memory), std::move(disk), std::chrono::hours(1));
  const Bundle bundle = MakeBundle(1);
  EXPECT_TRUE(absl::IsResourceExhausted(store.PutBundle(bundle)));
  ASSERT_TRUE(front->Forget({.kernels = {bundle.kernels[0]->key}}).ok());
  free = int64_t{1} << 40;
  absl::StatusOr<PinOutcome> pinned = store.SetPinned({bundle.plan->key}, true);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_EQ(pinned->missing_kernels, 1);
  EXPECT_TRUE(behind->HasKernel(bundle.kernels[1]->key));
  EXPECT_EQ(store.WhyUnwritten(bundle.plan->key), "");
}

TEST_F(RocksUpkeepTest, WhatIsPinnedTogetherDoesNotGoForOneAnother) {
  options_.budget_bytes = 150 << 10;
  std::unique_ptr<Store> disk = Open();
  Store* behind = disk.get();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(disk));
  const Bundle oldest = MakeBundle(1), second = MakeBundle(2);
  ASSERT_TRUE(store.PutBundle(oldest).ok());
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(store.PutBundle(second).ok());
  for (const auto& kernel : second.kernels) {
    ASSERT_TRUE(behind->Forget({.kernels = {kernel->key}}).ok());
  }
  // Full, so that something must go for them.
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(store.PutBundle(MakeBundle(3, 45000)).ok());
  ASSERT_TRUE(behind->HasPlan(oldest.plan->key));

  absl::Status absent =
      store.SetPinned({second.plan->key, oldest.plan->key, Sha256("absent")}, true).status();
  EXPECT_TRUE(absl::IsNotFound(absent)) << absent;
  EXPECT_FALSE(behind->HasKernel(second.kernels[0]->key)) << "nothing was changed";
  absl::StatusOr<PinOutcome> both = store.SetPinned({second.plan->key, oldest.plan->key}, true);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->changed, 2);
  EXPECT_EQ(both->missing_kernels, 0);
  EXPECT_EQ(both->not_written, "");
  for (const Bundle* bundle : {&oldest, &second}) {
    EXPECT_TRUE(behind->HasPlan(bundle->plan->key));
    for (const auto& kernel : bundle->kernels) EXPECT_TRUE(behind->HasKernel(kernel->key));
  }
}

TEST_F(RocksUpkeepTest, WhatIsMadeOfAPinnedPlanIsBoundedToo) {
  options_.budget_bytes = 100 << 10;
  std::unique_ptr<Store> disk = Open();
  Store* behind = disk.get();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), std::move(disk));
  std::vector<Bundle> bundles;
  for (int i = 0; i < 2; ++i) {
    bundles.push_back(MakeBundle(i));
    ASSERT_TRUE(store.PutBundle(bundles[static_cast<size_t>(i)]).ok());
    for (const auto& kernel : bundles.back().kernels) {
      ASSERT_TRUE(behind->Forget({.kernels = {kernel->key}}).ok());
    }
  }
  absl::StatusOr<PinOutcome> now =
      store.SetPinned({bundles[0].plan->key, bundles[1].plan->key}, true);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->missing_kernels, 2) << "those of one fit into three quarters";
  EXPECT_THAT(now->not_written, HasSubstr("at most 75.00 KiB may be pinned"));
  EXPECT_LE(behind->Stats()[0].pinned_bytes, options_.budget_bytes / 4 * 3);
  const Bundle& lacking = behind->HasKernel(bundles[0].kernels[0]->key) ? bundles[1] : bundles[0];
  EXPECT_TRUE(absl::IsResourceExhausted(store.PutBundle(lacking))) << "when it is made again";
  EXPECT_TRUE(store.PutBundle(MakeBundle(7, 5000)).ok()) << "there is room for what is new";
}

TEST_F(RocksUpkeepTest, TheCacheOfBlocksKeepsALargeOne) {
  // Half of it, for instance the index of a large table: in shards there is no room for that.
  constexpr int64_t kBytes = 64 << 20;
  std::shared_ptr<rocksdb::Cache> cache = MakeBlockCache(kBytes);
  static int block = 0;
  ASSERT_TRUE(cache->Insert("index", &block, kBytes / 2, [](const rocksdb::Slice&, void*) {}).ok());
  rocksdb::Cache::Handle* found = cache->Lookup("index");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(cache->Value(found), &block);
  cache->Release(found);
}

TEST_F(RocksUpkeepTest, PinsAreBoundedAndAllOrNothing) {
  options_.budget_bytes = 200 << 10;
  auto store = Open();
  std::vector<Digest> keys;
  for (int i = 0; i < 4; ++i) {
    Bundle bundle = MakeBundle(i);
    ASSERT_TRUE(store->PutBundle(bundle).ok());
    keys.push_back(bundle.plan->key);
  }
  absl::Status refused = store->SetPinned(keys, true).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("at most 150.00 KiB, 3 quarters"));
  EXPECT_EQ(store->Stats()[0].pinned_plans, 0);
  absl::Status absent = store->SetPinned({keys[0], Sha256("absent")}, true).status();
  EXPECT_TRUE(absl::IsNotFound(absent)) << absent;
  EXPECT_THAT(std::string(Message(absent)), HasSubstr(Sha256("absent").ToHex()));
  EXPECT_EQ(store->Stats()[0].pinned_plans, 0);
  // What is pinned may not push out what is asked for now.
  ASSERT_TRUE(store->SetPinned({keys[0], keys[1], keys[2]}, true).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store->PutBundle(MakeBundle(9, 60000))));
  for (const Digest& key : keys) EXPECT_TRUE(store->GetPlan({key})) << "nothing was evicted for it";
  EXPECT_TRUE(store->PutBundle(MakeBundle(10, 1000)).ok());
}

TEST_F(RocksUpkeepTest, APlanThatCannotBePinnedForDamageIsDroppedAndCounted) {
  const Bundle sound = MakeBundle(1);
  Bundle damaged = MakeBundle(2);
  damaged.tenant = "acme";
  const std::vector<Digest> both = {sound.plan->key, damaged.plan->key};
  auto open_damaged = [&] {
    auto fresh = Open();
    for (const Bundle& bundle : {sound, damaged}) EXPECT_TRUE(fresh->PutBundle(bundle).ok());
    fresh.reset();
    WithRawDatabase(options_.dir, [&](rocksdb::DB* db, auto& families) {
      const std::string_view bytes = BytesOf(damaged.plan->key);
      const rocksdb::Slice key(bytes.data(), bytes.size());
      ASSERT_TRUE(db->Put({}, families.at("plans"), key, "nothing like a plan").ok());
    });
    return Open();
  };
  {
    auto store = open_damaged();
    const absl::Status refused = store->SetPinned(both, true).status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_THAT(std::string(Message(refused)), HasSubstr(damaged.plan->key.ToHex()));
    EXPECT_EQ(store->Stats()[0].dropped, 1);
    EXPECT_EQ(store->Stats()[0].pinned_plans, 0);
    EXPECT_FALSE(store->HasPlan(damaged.plan->key));
    EXPECT_TRUE(store->SetPinned({sound.plan->key}, true).ok());
    EXPECT_TRUE(store->SetPinned({sound.plan->key}, false).ok());
  }
  // While memory has the plan nobody makes it again: it is written from there.
  auto memory = std::make_unique<MemoryStore>(1 << 20, Logger::Silent());
  ASSERT_TRUE(memory->PutBundle(damaged).ok());
  TieredStore store(std::move(memory), open_damaged());
  const absl::StatusOr<PinOutcome> pinned = store.SetPinned(both, true);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_EQ(pinned->pinned_plans, 2);
  EXPECT_EQ(store.Stats()[1].dropped, 1);
  EXPECT_EQ(store.TenantOf(damaged.plan->key), "acme");
}

TEST_F(RocksUpkeepTest, TenantsAreChargedForWhatTheyBroughtFirst) {
  Bundle first = MakeBundle(1);
  first.tenant = "shop";
  Bundle second = MakeBundle(2);
  second.tenant = "lab";
  second.kernels.push_back(first.kernels[0]);  // shared
  int64_t shop = 0;
  {
    auto store = Open();
    ASSERT_TRUE(store->PutBundle(first).ok());
    shop = store->TenantBytes().at("shop");
    EXPECT_EQ(shop, store->Stats()[0].bytes);
    ASSERT_TRUE(store->PutBundle(second).ok());
    EXPECT_EQ(store->TenantBytes().at("shop"), shop);
  }
  auto store = Open();
  EXPECT_EQ(store->TenantBytes().at("shop"), shop);
  EXPECT_EQ(store->TenantBytes().at("lab"), store->Stats()[0].bytes - shop);
  EXPECT_EQ(store->TenantOf(second.plan->key), "lab");
  EXPECT_EQ(store->ListPlans(std::nullopt, 1).plans[0].tenant, "lab");
  ASSERT_TRUE(store->Forget({.all = true}).ok());
  EXPECT_TRUE(store->TenantBytes().empty());
}

TEST_F(RocksUpkeepTest, ATenantsBudgetHoldsAlsoWhereNothingOfItCanGo) {
  auto of = [](int seed, const char* tenant) {
    Bundle bundle = MakeBundle(seed);
    bundle.tenant = tenant;
    return bundle;
  };
  options_.tenant_budget = [](const std::string& tenant) {
    return tenant == "shop" ? int64_t{100'000} : 0;
  };
  auto store = Open();
  const Bundle pinned = of(1, "shop"), kept = of(2, "shop");
  ASSERT_TRUE(store->PutBundle(pinned).ok());
  ASSERT_TRUE(store->SetPinned({pinned.plan->key}, true).ok());
  ASSERT_TRUE(store->PutBundle(kept).ok());
  ASSERT_TRUE(store->PutBundle(of(3, "lab")).ok());
  Bundle large = MakeBundle(4, 40'000);  // fits the budget, but not beside what is pinned
  large.tenant = "shop";
  absl::Status refused = store->PutBundle(large);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("tenant \"shop\" may keep 97.66 KiB"));
  EXPECT_LE(store->TenantBytes().at("shop"), 100'000);
  EXPECT_TRUE(store->GetPlan({kept.plan->key})) << "nothing went in vain";
  EXPECT_TRUE(store->GetKernel({kept.kernels[0]->key}));
  EXPECT_EQ(store->Stats()[0].evicted, 0);
  // Where its own entries can go they do, and others stay.
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(store->PutBundle(of(5, "shop")).ok());
  EXPECT_LE(store->TenantBytes().at("shop"), 100'000);
  EXPECT_GT(store->Stats()[0].evicted, 0);
  EXPECT_TRUE(store->GetPlan({pinned.plan->key}));
  EXPECT_TRUE(store->GetPlan({of(3, "lab").plan->key}));
  ASSERT_TRUE(store->PutBundle(of(5, "shop")).ok()) << "what is there needs no room";
}

TEST_F(RocksUpkeepTest, AnEntryWhoseFactsCannotBeReadGoes) {
  const Bundle bundle = MakeBundle(1), other = MakeBundle(2);
  {
    auto store = Open();
    ASSERT_TRUE(store->PutBundle(bundle).ok());
    ASSERT_TRUE(store->PutBundle(other).ok());
  }
  const Digest& lost = bundle.kernels[0]->key;
  const rocksdb::Slice key(BytesOf(lost).data(), BytesOf(lost).size());
  WithRawDatabase(options_.dir, [&](rocksdb::DB* db, auto& families) {
    const std::string facts = StrCat("e1", BytesOf(lost));
    std::string value;
    ASSERT_TRUE(db->Get({}, families["meta"], facts, &value).ok());
    ASSERT_TRUE(db->Put({}, families["meta"], facts, value.substr(1)).ok());
    ASSERT_TRUE(db->Put({}, families["meta"], "e?", "of no entry").ok());
  });
  {
    auto store = Open();
    EXPECT_EQ(store->Stats()[0].kernels, 3);
    EXPECT_EQ(store->Stats()[0].dropped, 2);
    EXPECT_EQ(logger_.LinesWith("cache_entry_dropped").size(), 2u);
    EXPECT_FALSE(store->GetKernel({lost}));
    EXPECT_TRUE(store->GetKernel({bundle.kernels[1]->key}));
  }
  WithRawDatabase(options_.dir, [&](rocksdb::DB* db, auto& families) {
    std::string value;
    EXPECT_TRUE(db->Get({}, families["kernels"], key, &value).IsNotFound()) << "nobody counts it";
    EXPECT_TRUE(db->Get({}, families["meta"], "e?", &value).IsNotFound());
  });
  EXPECT_EQ(Open()->Stats()[0].dropped, 0) << "once";
}

TEST_F(RocksUpkeepTest, WhatIsForgottenIsGoneForGood) {
  Bundle a = MakeBundle(1), b = MakeBundle(2);
  {
    auto store = Open();
    ASSERT_TRUE(store->PutBundle(a).ok());
    ASSERT_TRUE(store->PutBundle(b).ok());
    ASSERT_TRUE(store->SetPinned({a.plan->key}, true).ok());
    absl::StatusOr<Forgotten> gone = store->Forget(
        {.plans = {a.plan->key, a.plan->key, Sha256("absent")}, .kernels = {b.kernels[0]->key}});
    ASSERT_TRUE(gone.ok()) << gone.status();
    EXPECT_EQ(gone->plans, 1);
    EXPECT_EQ(gone->kernels, 1);
  }
  auto store = Open();
  EXPECT_FALSE(store->GetPlan({a.plan->key}));
  EXPECT_TRUE(store->GetKernel({a.kernels[0]->key})) << "kernels stay";
  EXPECT_TRUE(store->GetPlan({b.plan->key}));
  EXPECT_FALSE(store->GetKernel({b.kernels[0]->key}));
  EXPECT_EQ(store->Stats()[0].pinned_plans, 0);
  EXPECT_EQ(store->Stats()[0].dropped, 0) << "nothing was damaged";
}

TEST_F(RocksUpkeepTest, VerifyFindsWhatIsDamagedAndDropsIt) {
  std::vector<Bundle> bundles;
  {
    auto store = Open();
    for (int i = 0; i < 10; ++i) {
      bundles.push_back(MakeBundle(i));
      ASSERT_TRUE(store->PutBundle(bundles.back()).ok());
    }
  }
  Open().reset();  // out of the log, into files
  {
    auto store = Open();
    absl::StatusOr<StoreCheck> check = store->Verify(CancelToken());
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->plans, 10);
    EXPECT_EQ(check->kernels, 20);
    EXPECT_EQ(check->bytes, store->Stats()[0].bytes);
    EXPECT_GE(check->files, 2);
    EXPECT_EQ(check->damaged, 0);
    EXPECT_EQ(check->missing_kernels, 0);
  }
  for (const auto& file : std::filesystem::directory_iterator(options_.dir)) {
    if (file.path().extension() != ".blob") continue;
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file)) / 2)
        .write("?!?!", 4);
  }
  auto store = Open();
  absl::StatusOr<StoreCheck> check = store->Verify(CancelToken());
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->damaged, 2) << "a kernel and the file it is in";
  ASSERT_EQ(check->damage.size(), 2u);
  EXPECT_EQ(check->damage[0].kind, "kernel");
  EXPECT_EQ(check->damage[1].kind, "file");
  EXPECT_THAT(check->damage[1].name, testing::EndsWith(".blob"));
  EXPECT_EQ(check->missing_kernels, 1);
  EXPECT_EQ(store->Stats()[0].kernels, 19);
  EXPECT_EQ(store->Stats()[0].dropped, 1);
  CancelToken cancelled;
  cancelled.Cancel();
  EXPECT_EQ(store->Verify(cancelled).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(RocksUpkeepTest, VerifyKeepsWhatItCannotReadNow) {
  const Bundle bundle = MakeBundle(1);
  ASSERT_TRUE(Open()->PutBundle(bundle).ok());
  Open().reset();  // out of the log, into files
  auto store = Open();
  std::vector<std::filesystem::path> blobs;
  for (const auto& file : std::filesystem::directory_iterator(options_.dir)) {
    if (file.path().extension() == ".blob") blobs.push_back(file.path());
  }
  ASSERT_FALSE(blobs.empty());
  for (const auto& blob : blobs) std::filesystem::rename(blob, blob.string() + ".away");
  absl::StatusOr<StoreCheck> check = store->Verify(CancelToken());
  ASSERT_TRUE(check.ok()) << check.status();
  ASSERT_GE(check->damaged, 1);
  EXPECT_THAT(check->damage[0].reason, testing::EndsWith("(kept)"));
  for (const auto& blob : blobs) std::filesystem::rename(blob.string() + ".away", blob);
  EXPECT_EQ(store->Verify(CancelToken())->damaged, 0);
  EXPECT_EQ(store->Stats()[0].dropped, 0);
  EXPECT_TRUE(store->GetKernel({bundle.kernels[0]->key}));
}

TEST_F(RocksUpkeepTest, WhatACompactionCannotReadIsPutAsideAtTheNextStart) {
  Bundle bundle = MakeBundle(1);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Open()->PutBundle(MakeBundle(i)).ok());
  Open().reset();  // out of the log, into files
  std::vector<std::string> tables;
  WithRawDatabase(options_.dir, [&](rocksdb::DB* db, auto&) {
    std::vector<rocksdb::LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    for (const auto& file : files) {
      if (file.column_family_name == "plans") tables.push_back(file.db_path + file.name);
    }
  });
  ASSERT_FALSE(tables.empty());
  for (const std::string& table : tables) {
    std::fstream stream(table, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(100).write("?!?!", 4);
  }
  {
    auto store = Open();
    EXPECT_FALSE(store->started_empty_after_damage());
    EXPECT_FALSE(store->Compact(CancelToken()).ok());
    EXPECT_FALSE(store->Stats()[0].writable);
    EXPECT_THAT(store->Stats()[0].not_writable, HasSubstr("Corruption"));
    EXPECT_TRUE(store->GetKernel({bundle.kernels[0]->key})) << "reads go on";
  }
  auto store = Open();
  EXPECT_TRUE(store->Facts().started_empty);
  EXPECT_TRUE(store->Stats()[0].writable);
  EXPECT_TRUE(store->PutBundle(bundle).ok());
}

TEST_F(RocksUpkeepTest, CompactingGivesRoomBackToTheSystem) {
  auto store = Open();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(store->PutBundle(MakeBundle(i, 200000)).ok());
  Bundle kept = MakeBundle(100);
  ASSERT_TRUE(store->Forget({.all = true}).ok());
  ASSERT_TRUE(store->PutBundle(kept).ok());
  absl::StatusOr<StoreCompaction> sizes = store->Compact(CancelToken());
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_GT(sizes->bytes_before, 15 << 20);
  EXPECT_LT(sizes->bytes_after, 1 << 20);
  EXPECT_TRUE(store->GetKernel({kept.kernels[0]->key}));
}

TEST_F(RocksUpkeepTest, CompactingNeedsRoomForASecondCopyOfTheLargestFamily) {
  int64_t free = int64_t{1} << 40;
  options_.min_free_bytes = 1 << 20;
  options_.free_bytes = [&free](const std::string&) -> absl::StatusOr<int64_t> { return free; };
  const Bundle kept = MakeBundle(0);
  {
    auto store = Open();
    ASSERT_TRUE(store->PutBundle(kept).ok());
    for (int i = 1; i < 20; ++i) ASSERT_TRUE(store->PutBundle(MakeBundle(i, 200'000)).ok());
  }
  auto store = Open();  // out of the log, into files
  const int64_t bytes = store->Stats()[0].bytes;
  free = bytes / 2;
  absl::Status refused = store->Compact(CancelToken()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("1.00 MiB must stay free"));
  free = bytes + (2 << 20);
  EXPECT_TRUE(store->Compact(CancelToken()).ok());
  EXPECT_TRUE(store->GetKernel({kept.kernels[0]->key}));
}

// Bytes that this process has written up to now.
int64_t WrittenBytes() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t value = 0;
  while (io >> name >> value) {
    if (name == "wchar:") return value;
  }
  return 0;
}

TEST_F(RocksUpkeepTest, TheDirectoryStaysWithinItsPhysicalBound) {
  options_.budget_bytes = int64_t{64} << 20;
  auto store = Open();
  int64_t most = 0;
  const int64_t before = WrittenBytes();
  // Twelve times the budget: were nothing thrown away it would be twice the bound.
  for (int i = 0; i < 384; ++i) {
    clock_.Advance(std::chrono::milliseconds(10));
    ASSERT_TRUE(store->PutBundle(MakeBundle(i, 1 << 20)).ok());
    most = std::max(most, store->Stats()[0].disk_bytes);
  }
  RecordProperty("most_mib", StrCat(most >> 20));
  RecordProperty("written_mib", StrCat((WrittenBytes() - before) >> 20));
  EXPECT_LE(store->Stats()[0].bytes, options_.budget_bytes);
  // server/README.md, "The store": three times the budget and 192 MiB.
  EXPECT_LE(most, 3 * options_.budget_bytes + (int64_t{192} << 20));
}

// Keys are digests, so that each compaction meets all files.
TEST_F(RocksUpkeepTest, AStoreThatOnlyGrowsIsNotCopiedAgainAndAgain) {
  auto store = Open();
  const int64_t before = WrittenBytes();
  for (int i = 0; i < 192; ++i) ASSERT_TRUE(store->PutBundle(MakeBundle(i, 1 << 20)).ok());
  const int64_t bytes = store->Stats()[0].bytes;
  EXPECT_GT(bytes, int64_t{384} << 20);
  const double times = static_cast<double>(WrittenBytes() - before) / static_cast<double>(bytes);
  RecordProperty("times", StrCat(times));
  EXPECT_GT(times, 1.5) << "the log and the files";
  EXPECT_LT(times, 2.6);
}

// By the options that it keeps in its directory, of which the last count.
bool CollectsGarbage(const std::string& dir) {
  std::pair<int64_t, std::string> last;
  for (const auto& file : std::filesystem::directory_iterator(dir)) {
    const std::string name = file.path().filename();
    int64_t number = 0;
    if (sscanf(name.c_str(), "OPTIONS-%ld", &number) == 1) last = std::max(last, {number, name});
  }
  std::ifstream options(StrCat(dir, "/", last.second));
  bool of_kernels = false;
  for (std::string line; std::getline(options, line);) {
    if (line.find("[CFOptions ") != std::string::npos) {
      of_kernels = line.find("\"kernels\"") != std::string::npos;
    }
    if (of_kernels && line.find("enable_blob_garbage_collection=true") != std::string::npos) {
      return true;
    }
  }
  return false;
}

// What is deleted lies scattered: no file is free of what is kept.
TEST_F(RocksUpkeepTest, GarbageIsCollectedWhileThereIsMuchOfIt) {
  auto store = Open();
  int made = 0;
  auto put = [&](int bundles) {
    for (int i = 0; i < bundles; ++i) {
      ASSERT_TRUE(store->PutBundle(MakeBundle(made++, 1 << 20)).ok());
    }
  };
  put(96);
  EXPECT_FALSE(CollectsGarbage(options_.dir));
  std::vector<Digest> second;
  for (int i = 0; i < made; i += 2) {
    for (const auto& kernel : MakeBundle(i, 1 << 20).kernels) second.push_back(kernel->key);
  }
  ASSERT_TRUE(store->Forget({.kernels = second}).ok());
  for (int i = 0; i < 6 && !CollectsGarbage(options_.dir); ++i) put(16);
  EXPECT_TRUE(CollectsGarbage(options_.dir));
  for (int i = 0; i < 12 && CollectsGarbage(options_.dir); ++i) put(16);
  EXPECT_FALSE(CollectsGarbage(options_.dir)) << "little is left";
  const StoreStats stats = store->Stats()[0];
  RecordProperty("live_mib", StrCat(stats.bytes >> 20));
  RecordProperty("disk_mib", StrCat(stats.disk_bytes >> 20));
}

TEST_F(RocksUpkeepTest, NothingIsWrittenBelowTheFreeSpaceAndItIsSaidWhy) {
  int64_t free = 1 << 20;
  options_.min_free_bytes = 1 << 20;
  options_.free_bytes = [&free](const std::string&) -> absl::StatusOr<int64_t> { return free; };
  auto store = Open();
  Bundle bundle = MakeBundle(1);
  ASSERT_TRUE(store->PutBundle(bundle).ok());
  free = 1000;
  StoreStats full = store->Stats()[0];
  EXPECT_FALSE(full.writable) << "without a write that fails";
  EXPECT_THAT(full.not_writable, HasSubstr("nothing is written below 1.00 MiB"));
  EXPECT_TRUE(absl::IsResourceExhausted(store->PutBundle(MakeBundle(2))));
  EXPECT_TRUE(absl::IsResourceExhausted(store->SetPinned({bundle.plan->key}, true).status()));
  EXPECT_TRUE(store->GetPlan({bundle.plan->key}));
  free = 2 << 20;
  EXPECT_TRUE(store->Stats()[0].writable) << "without a write";
  EXPECT_TRUE(store->PutBundle(MakeBundle(2)).ok());
  EXPECT_EQ(logger_.LinesWith("store_writable").size(), 2u);
}

}  // namespace
}  // namespace fusion
