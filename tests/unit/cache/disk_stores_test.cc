#include "core/cache/rocks/disk_stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/file.h"
#include "core/cache/memory/memory_records.h"
#include "core/cache/memory/memory_store.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_clock.h"
#include "tests/support/stored_bundle.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class DiskStoresTest : public testing::Test {
 protected:
  // The stores of a disk that is full, and on which `stored_` lies.
  absl::StatusOr<DiskStores> OpenFake() {
    RocksStoreOptions options;
    options.dir = "/disk";
    options.budget_bytes = 12345;
    auto open = [this](bool read_only) -> absl::StatusOr<DiskStores> {
      ++(read_only ? reads_ : writes_);
      if (read_only && !readable_) return NotFound("nothing is there");
      if (!read_only) RETURN_IF_ERROR(disk_);
      DiskStores stores{.store = std::make_unique<MemoryStore>(1 << 20, logger_),
                        .measurements = std::make_unique<MemoryMeasurements>(),
                        .timings = std::make_unique<MemoryTimings>()};
      EXPECT_TRUE(stores.store->PutBundle(stored_).ok());
      return stores;
    };
    return OpenDiskStores(options, open, logger_, clock_);
  }

  const Bundle stored_ = SampleBundle(1);
  absl::Status disk_ = ResourceExhausted("no space left on device");
  bool readable_ = true;
  int reads_ = 0;
  int writes_ = 0;
  CapturingLogger logger_;
  FakeClock clock_;
};

TEST_F(DiskStoresTest, WhereThereIsRoomTheyAreOpenedOnce) {
  disk_ = absl::OkStatus();
  absl::StatusOr<DiskStores> stores = OpenFake();
  ASSERT_TRUE(stores.ok());
  EXPECT_TRUE(stores->store->PutBundle(SampleBundle(2)).ok());
  EXPECT_EQ(writes_, 1);
  EXPECT_EQ(reads_, 0);
}

TEST_F(DiskStoresTest, WhatIsNoWantOfRoomIsAnErrorAsEver) {
  disk_ = FailedPrecondition("open already");
  EXPECT_EQ(OpenFake().status(), disk_);
}

TEST_F(DiskStoresTest, OnAFullDiskTheyAreReadUntilTheyCanBeWritten) {
  DiskStores stores = OpenFake().value();
  EXPECT_EQ(logger_.LinesWith("store_not_writable").size(), 1u);
  EXPECT_TRUE(stores.store->GetPlan({stored_.plan->key}));
  EXPECT_TRUE(stores.store->GetKernel({stored_.kernels[0]->key}));
  const Bundle more = SampleBundle(2);
  EXPECT_EQ(stores.store->PutBundle(more), disk_);
  EXPECT_EQ(stores.store->Forget({.all = true}).status(), disk_);
  EXPECT_EQ(stores.store->SetPinned({stored_.plan->key}, true).status(), disk_);
  EXPECT_EQ(stores.measurements->Put(stored_.plan->key, {}), disk_);
  StoreStats stats = stores.store->Stats()[0];
  EXPECT_EQ(stats.tier, Tier::kDisk);
  EXPECT_EQ(stats.limit_bytes, 12345);
  EXPECT_FALSE(stats.writable);
  EXPECT_EQ(stats.not_writable, "no space left on device");
  EXPECT_EQ(stats.write_failures, 1);
  EXPECT_EQ(stores.store->Facts().dir, "/disk");
  EXPECT_EQ(writes_, 1) << "not at every write";

  clock_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(stores.store->PutBundle(more), disk_);
  EXPECT_EQ(writes_, 2);

  const int64_t removals = stores.store->removals();
  disk_ = absl::OkStatus();
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_TRUE(stores.store->Stats()[0].writable) << "without a write";
  EXPECT_TRUE(stores.store->PutBundle(more).ok());
  EXPECT_TRUE(stores.store->GetPlan({more.plan->key}));
  EXPECT_TRUE(stores.measurements->Put(stored_.plan->key, {}).ok());
  EXPECT_GT(stores.store->removals(), removals) << "it may not be what was read before";
  EXPECT_EQ(stores.store->Stats()[0].write_failures, 2) << "those are not forgotten";
  EXPECT_EQ(writes_, 3);
}

TEST_F(DiskStoresTest, WhatCannotEvenBeReadIsEmpty) {
  readable_ = false;
  DiskStores stores = OpenFake().value();
  EXPECT_THAT(logger_.LinesWith("store_not_writable").at(0), HasSubstr("nothing is there"));
  EXPECT_FALSE(stores.store->GetPlan({stored_.plan->key}));
  EXPECT_EQ(stores.store->PutBundle(SampleBundle(2)), disk_);
  EXPECT_FALSE(stores.store->GetPlan({SampleBundle(2).plan->key}));
  EXPECT_FALSE(stores.store->Stats()[0].writable);
  disk_ = absl::OkStatus();
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_TRUE(stores.store->PutBundle(SampleBundle(2)).ok());
  EXPECT_TRUE(stores.store->GetPlan({stored_.plan->key})) << "what lies there is read";
}

TEST_F(DiskStoresTest, OfADatabaseTheLockPassesFromReaderToWriter) {
  TempDir parent = TempDir::Create(testing::TempDir(), "disk-stores-").value();
  RocksStoreOptions options;
  options.dir = parent.path() + "/db";
  options.min_free_bytes = 0;
  ASSERT_TRUE(OpenDiskStores(options, logger_, clock_)->store->PutBundle(stored_).ok());
  // What OpenDiskStores does with RocksStore, but that the first attempt finds the disk full.
  auto open = [&, first = true,
               at = options](bool read_only) mutable -> absl::StatusOr<DiskStores> {
    if (std::exchange(first, false)) return ResourceExhausted("full");
    if (at.lock == nullptr) at.lock = LockStore(at.dir).value();
    at.read_only = read_only;
    ASSIGN_OR_RETURN(std::unique_ptr<RocksStore> disk, RocksStore::Open(at, logger_, clock_));
    DiskStores stores{.measurements = disk->OpenRecords<PlanMeasurements>(),
                      .timings = disk->OpenRecords<KernelTimings>()};
    stores.store = std::move(disk);
    return stores;
  };
  const KernelTimings timings{.kernel = Sha256("kernel"), .times = {.calls = 1}};
  {
    DiskStores stores = OpenDiskStores(options, std::move(open), logger_, clock_).value();
    EXPECT_TRUE(absl::IsResourceExhausted(stores.timings->Put(KeyOf(timings), timings)));
    EXPECT_TRUE(stores.store->GetPlan({stored_.plan->key}));
    EXPECT_FALSE(stores.store->PutBundle(SampleBundle(2)).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(RocksStore::Open(options, logger_, clock_).status()));
    clock_.Advance(std::chrono::seconds(2));
    EXPECT_TRUE(stores.store->PutBundle(SampleBundle(2)).ok());
    EXPECT_EQ(stores.store->Stats()[0].plans, 2);
    EXPECT_TRUE(stores.timings->Put(KeyOf(timings), timings).ok());
    EXPECT_EQ(stores.timings->Get(KeyOf(timings)), timings);
    EXPECT_EQ(stores.timings->Stats().records, 1);
    EXPECT_EQ(stores.measurements->Stats().records, 0);
    stores.timings->Remove(KeyOf(timings));
    EXPECT_TRUE(stores.timings->Keys().empty());
  }
  EXPECT_EQ(OpenDiskStores(options, logger_, clock_)->store->Stats()[0].plans, 2);
}

}  // namespace
}  // namespace fusion
