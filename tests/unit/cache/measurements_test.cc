#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include "core/cache/memory/memory_records.h"
#include "core/cache/rocks/rocks_store.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_clock.h"
#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PlanMeasurements MeasuredAt(int64_t unix_ms, size_t samples = 100) {
  return {.kernels = Sha256("kernels"),
          .launches = {{0, {.calls = 1000, .samples_us = std::vector<float>(samples, 2)}}},
          .last_report_unix_ms = unix_ms};
}

int64_t UnixMs(const Clock& clock) { return clock.UnixTime() / std::chrono::milliseconds(1); }

TEST(MemoryMeasurements, GiveBackWhatWasPutTheLatestFirst) {
  MemoryMeasurements store;
  EXPECT_FALSE(store.Get(Sha256("a")).has_value());
  EXPECT_TRUE(store.Put(Sha256("a"), MeasuredAt(3)).ok());
  EXPECT_TRUE(store.Put(Sha256("b"), MeasuredAt(2)).ok());
  EXPECT_EQ(store.Get(Sha256("a")), MeasuredAt(3));
  EXPECT_THAT(store.Keys(), ElementsAre(Sha256("a"), Sha256("b")));
  EXPECT_TRUE(store.Put(Sha256("b"), MeasuredAt(4)).ok());
  EXPECT_THAT(store.Keys(), ElementsAre(Sha256("b"), Sha256("a")));
  EXPECT_EQ(store.Stats().records, 2);
}

TEST(MemoryMeasurements, ThoseReportedLongestAgoGoFirst) {
  MemoryMeasurements store(3 * ChargedBytes(MeasuredAt(0)));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(store.Put(Sha256(StrCat(i)), MeasuredAt(i)).ok());
  EXPECT_THAT(store.Keys(), ElementsAre(Sha256("4"), Sha256("3"), Sha256("2")));
  EXPECT_FALSE(store.Get(Sha256("1")).has_value());
  EXPECT_EQ(store.Stats().evicted, 2);
  EXPECT_LE(store.Stats().bytes, store.Stats().limit_bytes);
  PlanMeasurements large = MeasuredAt(9, 1000);
  EXPECT_EQ(store.Put(Sha256("large"), large).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(store.Stats().records, 3) << "and nothing went for it";
}

KernelTimings TimingsOf(const std::string& tenant, int number, int64_t unix_ms) {
  return {.kernel = Sha256(StrCat(number)), .tenant = tenant, .last_report_unix_ms = unix_ms};
}

TEST(MemoryTimings, OfATenantDoNotDisplaceThoseOfOthers) {
  const int64_t one = ChargedBytes(TimingsOf("a", 0, 0));
  MemoryTimings store(10 * one);
  for (int i = 0; i < 4; ++i) {
    const KernelTimings timings = TimingsOf("a", i, i);
    ASSERT_TRUE(store.Put(KeyOf(timings), timings).ok());
  }
  for (int i = 0; i < 100; ++i) {
    const KernelTimings timings = TimingsOf("b", i, 100 + i);
    ASSERT_TRUE(store.Put(KeyOf(timings), timings).ok());
  }
  EXPECT_EQ(store.Stats().records, 10);
  EXPECT_EQ(store.Stats().evicted, 94);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(store.Get(KeyOf(TimingsOf("a", i, 0))).has_value()) << i;
  }
  EXPECT_TRUE(store.Get(KeyOf(TimingsOf("b", 99, 0))).has_value()) << "the newest stays";
}

class RocksMeasurementsTest : public testing::Test {
 protected:
  void Open(int64_t budget_bytes = int64_t{64} << 20) {
    Close();
    absl::StatusOr<std::unique_ptr<RocksStore>> store = RocksStore::Open(
        {.dir = dir_.path("db"), .free_bytes = [this](const std::string&) { return free_bytes_; }},
        logger_, clock_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    measurements_ = store_->OpenRecords<PlanMeasurements>(budget_bytes);
  }
  void Close() {
    measurements_ = nullptr;
    store_ = nullptr;
  }
  // Changes a stored record while the store is closed.
  void Spoil(const Digest& plan) {
    Change([&](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
      if (family->GetName() != "measurements") return;
      rocksdb::Slice key(BytesOf(plan).data(), BytesOf(plan).size());
      std::string value;
      ASSERT_TRUE(db->Get({}, family, key, &value).ok());
      value[value.size() / 2] = static_cast<char>(value[value.size() / 2] ^ 1);
      ASSERT_TRUE(db->Put({}, family, key, value).ok());
    });
  }
  // Records that name a plan and are too short, or name none.
  void SpoilIndex(const Digest& plan) {
    Change([&](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
      if (family->GetName() != "meta") return;
      ASSERT_TRUE(db->Put({}, family, StrCat("m", BytesOf(plan)), "short").ok());
      ASSERT_TRUE(db->Put({}, family, "mystery", "short").ok());
    });
  }
  // Entries of a family while the store is closed.
  int64_t Count(const std::string& name, const std::string& prefix = "") {
    int64_t count = 0;
    Change([&](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
      if (family->GetName() != name) return;
      std::unique_ptr<rocksdb::Iterator> it(db->NewIterator({}, family));
      for (it->SeekToFirst(); it->Valid(); it->Next()) count += it->key().starts_with(prefix);
    });
    return count;
  }
  void Change(const std::function<void(rocksdb::DB*, rocksdb::ColumnFamilyHandle*)>& change) {
    Close();
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, dir_.path("db"), &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open({}, dir_.path("db"), families, &handles, &db).ok());
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      change(db, handle);
      ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
    delete db;
  }

  ScratchDir dir_;
  CapturingLogger logger_;
  FakeClock clock_;
  int64_t free_bytes_ = int64_t{1} << 40;
  std::unique_ptr<RocksStore> store_;
  std::unique_ptr<MeasurementStore> measurements_;
};

TEST_F(RocksMeasurementsTest, AreThereAfterReopeningTheLatestFirst) {
  Open();
  int64_t now = UnixMs(clock_);
  EXPECT_TRUE(measurements_->Put(Sha256("a"), MeasuredAt(now)).ok());
  EXPECT_TRUE(measurements_->Put(Sha256("b"), MeasuredAt(now + 1)).ok());
  EXPECT_TRUE(measurements_->Put(Sha256("a"), MeasuredAt(now + 2)).ok());
  Open();
  EXPECT_EQ(measurements_->Get(Sha256("a")), MeasuredAt(now + 2));
  EXPECT_THAT(measurements_->Keys(), ElementsAre(Sha256("a"), Sha256("b")));
  EXPECT_EQ(measurements_->Stats().records, 2);
  EXPECT_GT(measurements_->Stats().bytes, 400);
  EXPECT_EQ(store_->Stats()[0].plans, 0) << "they are no plans";
}

TEST_F(RocksMeasurementsTest, StayBelowTheirBudgetAlsoOnDisk) {
  Open(/*budget_bytes=*/2000);
  int64_t now = UnixMs(clock_);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(measurements_->Put(Sha256(StrCat(i)), MeasuredAt(now + i)).ok());
  }
  RecordStats stats = measurements_->Stats();
  EXPECT_LE(stats.bytes, 2000);
  EXPECT_EQ(stats.records + stats.evicted, 10);
  EXPECT_GT(stats.evicted, 0);
  EXPECT_FALSE(measurements_->Get(Sha256("0")).has_value());
  Open(2000);
  EXPECT_EQ(measurements_->Stats().records, stats.records);
  EXPECT_TRUE(measurements_->Get(Sha256("9")).has_value());
  EXPECT_FALSE(measurements_->Get(Sha256("0")).has_value());
}

TEST_F(RocksMeasurementsTest, ADamagedRecordIsAMissLoggedCountedAndDeleted) {
  Open();
  EXPECT_TRUE(measurements_->Put(Sha256("a"), MeasuredAt(UnixMs(clock_))).ok());
  Spoil(Sha256("a"));
  Open();
  EXPECT_FALSE(measurements_->Get(Sha256("a")).has_value());
  EXPECT_EQ(measurements_->Stats().dropped, 1);
  EXPECT_THAT(measurements_->Keys(), IsEmpty());
  EXPECT_THAT(logger_.LinesWith("cache_entry_dropped"), testing::SizeIs(1));
  EXPECT_FALSE(measurements_->Get(Sha256("a")).has_value());
  EXPECT_EQ(measurements_->Stats().dropped, 1) << "it is gone";
}

TEST_F(RocksMeasurementsTest, WhatTheIndexCannotReadIsLoggedCountedAndDeleted) {
  Open();
  for (const char* plan : {"a", "b"}) {
    EXPECT_TRUE(measurements_->Put(Sha256(plan), MeasuredAt(UnixMs(clock_))).ok());
  }
  SpoilIndex(Sha256("a"));
  Open();
  EXPECT_THAT(measurements_->Keys(), ElementsAre(Sha256("b")));
  EXPECT_EQ(measurements_->Stats().dropped, 2);
  EXPECT_THAT(logger_.LinesWith("cache_entry_dropped"), testing::SizeIs(2));
  EXPECT_EQ(Count("measurements"), 1) << "nothing stays uncounted";
  EXPECT_EQ(Count("meta", "m"), 1);
}

TEST_F(RocksMeasurementsTest, ASmallerBudgetCountsFromTheStart) {
  Open();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(measurements_->Put(Sha256(StrCat(i)), MeasuredAt(UnixMs(clock_) + i)).ok());
  }
  Open(/*budget_bytes=*/2000);
  RecordStats stats = measurements_->Stats();
  EXPECT_LE(stats.bytes, 2000);
  EXPECT_GT(stats.records, 0);
  EXPECT_EQ(stats.records + stats.evicted, 10);
  EXPECT_TRUE(measurements_->Get(Sha256("9")).has_value());
  EXPECT_EQ(Count("measurements"), stats.records);
}

TEST_F(RocksMeasurementsTest, RemovedOnesAreGoneFromTheDiskToo) {
  Open();
  for (const char* plan : {"a", "b"}) {
    EXPECT_TRUE(measurements_->Put(Sha256(plan), MeasuredAt(UnixMs(clock_))).ok());
  }
  measurements_->Remove(Sha256("a"));
  measurements_->Remove(Sha256("nobody's"));
  EXPECT_FALSE(measurements_->Get(Sha256("a")).has_value());
  EXPECT_THAT(measurements_->Keys(), ElementsAre(Sha256("b")));
  EXPECT_EQ(Count("measurements"), 1);
  EXPECT_EQ(Count("meta", "m"), 1);
}

TEST_F(RocksMeasurementsTest, OldOnesAreForgottenWhenTheStoreIsOpened) {
  Open();
  EXPECT_TRUE(measurements_->Put(Sha256("old"), MeasuredAt(UnixMs(clock_))).ok());
  clock_.Advance(std::chrono::hours(24 * 50));
  EXPECT_TRUE(measurements_->Put(Sha256("new"), MeasuredAt(UnixMs(clock_))).ok());
  clock_.Advance(std::chrono::hours(24 * 20));
  Open();
  EXPECT_THAT(measurements_->Keys(), ElementsAre(Sha256("new")));
  EXPECT_FALSE(measurements_->Get(Sha256("old")).has_value());
}

TEST_F(RocksMeasurementsTest, NoTimesAreWrittenOnAFullDisk) {
  Open();
  std::unique_ptr<TimingStore> timings = store_->OpenRecords<KernelTimings>();
  const KernelTimings first = TimingsOf("a", 1, UnixMs(clock_));
  ASSERT_TRUE(timings->Put(KeyOf(first), first).ok());
  free_bytes_ = 0;
  KernelTimings more = first;
  more.times = {.calls = 7, .samples_us = {1}};
  EXPECT_TRUE(absl::IsResourceExhausted(timings->Put(KeyOf(first), more)));
  EXPECT_EQ(timings->Get(KeyOf(first)), first);
}

TEST_F(RocksMeasurementsTest, ADamagedRecordOfTimesIsAMissLoggedCountedAndDeleted) {
  Open();
  const KernelTimings first = TimingsOf("a", 1, UnixMs(clock_));
  ASSERT_TRUE(store_->OpenRecords<KernelTimings>()->Put(KeyOf(first), first).ok());
  Change([&](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
    if (family->GetName() != "measurements") return;
    const std::string key = StrCat("t", BytesOf(KeyOf(first)));
    std::string value;
    ASSERT_TRUE(db->Get({}, family, key, &value).ok());
    value[value.size() / 2] = static_cast<char>(value[value.size() / 2] ^ 1);
    ASSERT_TRUE(db->Put({}, family, key, value).ok());
  });
  Open();
  std::unique_ptr<TimingStore> timings = store_->OpenRecords<KernelTimings>();
  EXPECT_EQ(timings->Stats().records, 1);
  EXPECT_FALSE(timings->Get(KeyOf(first)).has_value());
  EXPECT_EQ(timings->Stats().records, 0);
  EXPECT_EQ(timings->Stats().dropped, 1);
  EXPECT_THAT(logger_.LinesWith("cache_entry_dropped"), testing::SizeIs(1));
  timings = nullptr;  // it keeps the database open
  EXPECT_EQ(Count("measurements"), 0);
}

TEST_F(RocksMeasurementsTest, NothingIsWrittenOnAFullDisk) {
  Open();
  EXPECT_TRUE(measurements_->Put(Sha256("a"), MeasuredAt(UnixMs(clock_))).ok());
  free_bytes_ = 0;
  absl::Status full = measurements_->Put(Sha256("a"), MeasuredAt(UnixMs(clock_) + 1));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(measurements_->Get(Sha256("a")), MeasuredAt(UnixMs(clock_)));
}

TEST_F(RocksMeasurementsTest, TimesOfKernelsLieBesideThem) {
  Open();
  std::unique_ptr<TimingStore> timings = store_->OpenRecords<KernelTimings>();
  const int64_t now = UnixMs(clock_);
  const KernelTimings first{.kernel = Sha256("k"),
                            .times = {.calls = 2, .samples_us = {3, 4}},
                            .last_report_unix_ms = now};
  EXPECT_TRUE(timings->Put(KeyOf(first), first).ok());
  EXPECT_TRUE(measurements_->Put(Sha256("a"), MeasuredAt(now)).ok());
  timings = nullptr;
  Open();
  timings = store_->OpenRecords<KernelTimings>();
  EXPECT_EQ(timings->Get(KeyOf(first)), first);
  EXPECT_THAT(timings->Keys(), ElementsAre(KeyOf(first)));
  EXPECT_THAT(measurements_->Keys(), ElementsAre(Sha256("a")));
  EXPECT_EQ(timings->Stats().records, 1);
  measurements_->Remove(KeyOf(first));
  EXPECT_FALSE(measurements_->Get(KeyOf(first)).has_value());
  EXPECT_EQ(timings->Get(KeyOf(first)), first) << "no key of a plan names timings";
  timings->Remove(KeyOf(first));
  EXPECT_FALSE(timings->Get(KeyOf(first)).has_value());
  EXPECT_EQ(measurements_->Get(Sha256("a")), MeasuredAt(now));
  timings = nullptr;
}

TEST_F(RocksMeasurementsTest, TimesOfATenantDoNotDisplaceThoseOfOthersAfterReopeningEither) {
  Open();
  const int64_t now = UnixMs(clock_);
  int64_t budget = 0;
  {
    std::unique_ptr<TimingStore> timings = store_->OpenRecords<KernelTimings>();
    for (int i = 0; i < 40; ++i) {
      const KernelTimings more = TimingsOf(i < 4 ? "a" : "b", i, now + i);
      ASSERT_TRUE(timings->Put(KeyOf(more), more).ok());
    }
    budget = timings->Stats().bytes / 4;
  }
  Open();
  std::unique_ptr<TimingStore> timings = store_->OpenRecords<KernelTimings>(budget);
  EXPECT_LE(timings->Stats().bytes, budget);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(timings->Get(KeyOf(TimingsOf("a", i, 0))).has_value()) << i;
  }
  EXPECT_FALSE(timings->Get(KeyOf(TimingsOf("b", 4, 0))).has_value());
}

TEST_F(RocksMeasurementsTest, MayOutliveTheStore) {
  Open();
  store_ = nullptr;
  EXPECT_TRUE(measurements_->Put(Sha256("a"), MeasuredAt(UnixMs(clock_))).ok());
  EXPECT_TRUE(measurements_->Get(Sha256("a")).has_value());
}

}  // namespace
}  // namespace fusion
