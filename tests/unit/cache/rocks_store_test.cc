#include "core/cache/rocks/rocks_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "core/base/files/file.h"
#include "core/cache/rocks/frame.h"
#include "core/wire/kernel.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_clock.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class RocksStoreTest : public testing::Test {
 protected:
  RocksStoreTest() : parent_(TempDir::Create(testing::TempDir(), "rocks-store-").value()) {
    options_.dir = parent_.path() + "/store";
    options_.min_free_bytes = 0;
  }

  std::unique_ptr<RocksStore> Open() {
    absl::StatusOr<std::unique_ptr<RocksStore>> store = RocksStore::Open(options_, logger_, clock_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  static Bundle SampleBundle(int seed, size_t binary_bytes = 20000) {
    Bundle bundle;
    bundle.plan =
        std::make_shared<StoredPlan>(MakeStoredPlan(StrCat("graph ", seed), SamplePlan(), seed));
    for (int i = 0; i < 2; ++i) {
      bundle.kernels.push_back(
          std::make_shared<KernelArtifact>(SampleKernel(seed * 100 + i, binary_bytes)));
    }
    return bundle;
  }

  // Changes a stored value behind the store's back.
  void Tamper(const std::string& family, const Digest& key,
              const std::function<std::string(std::string)>& change) {
    WithFamily(family, [&](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
      std::string value;
      ASSERT_TRUE(db->Get({}, handle, Slice(key), &value).ok());
      ASSERT_TRUE(db->Put({}, handle, Slice(key), change(value)).ok());
    });
  }
  // Deletes one behind the store's back.
  void Remove(const std::string& family, const Digest& key) {
    WithFamily(family, [&](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
      ASSERT_TRUE(db->Delete({}, handle, Slice(key)).ok());
    });
  }

  static rocksdb::Slice Slice(const Digest& key) {
    return {BytesOf(key).data(), BytesOf(key).size()};
  }

  // Opens the closed store's database and does something to one of its families.
  void WithFamily(const std::string& family,
                  const std::function<void(rocksdb::DB*, rocksdb::ColumnFamilyHandle*)>& change) {
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, options_.dir, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open({}, options_.dir, families, &handles, &db).ok());
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == family) change(db, handles[i]);
    }
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
    delete db;
  }

  // Flips four bytes in the middle of every file with this extension; returns how many there were.
  int FlipBytesInFiles(const std::string& extension) const {
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator(options_.dir)) {
      std::string name = file.path().filename();
      if (file.path().extension() != extension && !name.starts_with(extension)) continue;
      std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      auto size = static_cast<std::streamoff>(std::filesystem::file_size(file));
      char bytes[4] = {};
      stream.seekg(size / 2).read(bytes, sizeof(bytes));
      for (char& byte : bytes) byte = static_cast<char>(byte ^ 0x5a);
      stream.seekp(size / 2).write(bytes, sizeof(bytes));
      ++files;
    }
    return files;
  }

  TempDir parent_;
  RocksStoreOptions options_;
  CapturingLogger logger_;
  FakeClock clock_;
};

TEST_F(RocksStoreTest, EntriesSurviveReopening) {
  Bundle bundle = SampleBundle(1);
  {
    auto store = Open();
    ASSERT_TRUE(store->PutBundle(bundle).ok());
  }
  auto store = Open();
  Found<StoredPlan> plan = store->GetPlan({bundle.plan->key, bundle.plan->full_key});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan.tier, Tier::kDisk);
  EXPECT_EQ(plan.value->plan_bytes, bundle.plan->plan_bytes);
  Found<KernelArtifact> kernel = store->GetKernel({bundle.kernels[0]->key});
  ASSERT_TRUE(kernel);
  EXPECT_EQ(EncodeArtifact(*kernel.value), EncodeArtifact(*bundle.kernels[0]));
  EXPECT_FALSE(store->GetKernel({Sha256("absent")}));
  EXPECT_FALSE(store->started_empty_after_damage());
  StoreStats stats = store->Stats()[0];
  EXPECT_EQ(stats.plans, 1);
  EXPECT_EQ(stats.kernels, 2);
  EXPECT_GT(stats.bytes, 40000);
  EXPECT_GT(stats.disk_bytes, 40000);
  EXPECT_LT(stats.disk_bytes, 4 << 20) << "room that was made beforehand does not count";
}

TEST_F(RocksStoreTest, AFlippedBitInAValueIsAMissAndTheEntryGoes) {
  Bundle bundle = SampleBundle(1);
  ASSERT_TRUE(Open()->PutBundle(bundle).ok());
  for (size_t position : {size_t{0}, size_t{3}, size_t{10}, size_t{100}, size_t{9999}}) {
    Tamper("kernels", bundle.kernels[0]->key, [&](std::string value) {
      value[position] = static_cast<char>(value[position] ^ 1);
      return value;
    });
    auto store = Open();
    EXPECT_FALSE(store->GetKernel({bundle.kernels[0]->key})) << position;
    EXPECT_EQ(store->Stats()[0].kernels, 1) << "it is not listed any more";
    EXPECT_EQ(store->Stats()[0].dropped, 1);
    EXPECT_TRUE(store->GetKernel({bundle.kernels[1]->key}));
    ASSERT_TRUE(store->PutBundle(bundle).ok());  // compiled again
    EXPECT_TRUE(store->GetKernel({bundle.kernels[0]->key}));
  }
  EXPECT_EQ(logger_.LinesWith("cache_entry_dropped").size(), 5u);
}

TEST_F(RocksStoreTest, TruncatedEntriesAreMisses) {
  Bundle bundle = SampleBundle(1);
  ASSERT_TRUE(Open()->PutBundle(bundle).ok());
  for (size_t keep : {size_t{0}, size_t{1}, size_t{36}, size_t{500}}) {
    Tamper("plans", bundle.plan->key, [&](std::string value) { return value.substr(0, keep); });
    auto store = Open();
    EXPECT_FALSE(store->GetPlan({bundle.plan->key, bundle.plan->full_key})) << keep;
    ASSERT_TRUE(store->PutBundle(bundle).ok());
  }
}

TEST_F(RocksStoreTest, AnotherFullKeyUnderTheSameDigestIsAMiss) {
  Bundle bundle = SampleBundle(1);
  {
    auto store = Open();
    ASSERT_TRUE(store->PutBundle(bundle).ok());
    EXPECT_FALSE(store->GetPlan({bundle.plan->key, "a collision"}));
    EXPECT_FALSE(store->GetPlan({bundle.plan->key, bundle.plan->full_key})) << "it was deleted";
    ASSERT_TRUE(store->PutBundle(bundle).ok());
  }
  // A sound entry of another kernel under this kernel's key.
  Tamper("kernels", bundle.kernels[0]->key,
         [&](const std::string& /*value*/) { return Frame(EncodeArtifact(*bundle.kernels[1])); });
  auto store = Open();
  EXPECT_FALSE(store->GetKernel({bundle.kernels[0]->key}));
  EXPECT_EQ(logger_.LinesWith("full key differs").size(), 1u);
  EXPECT_EQ(logger_.LinesWith("entry has the key").size(), 1u);
}

TEST_F(RocksStoreTest, DamagedFilesGiveMissesNeverWrongValues) {
  std::vector<Bundle> bundles;
  for (int i = 0; i < 20; ++i) bundles.push_back(SampleBundle(i));
  {
    auto store = Open();
    for (const Bundle& bundle : bundles) ASSERT_TRUE(store->PutBundle(bundle).ok());
  }
  Open().reset();  // moves what is in the log into tables and blob files
  ASSERT_GT(FlipBytesInFiles(".blob"), 0);
  auto store = Open();
  int hits = 0;
  for (const Bundle& bundle : bundles) {
    for (const auto& kernel : bundle.kernels) {
      Found<KernelArtifact> found = store->GetKernel({kernel->key});
      if (!found) continue;
      ++hits;
      EXPECT_EQ(found.value->binary, kernel->binary);
    }
  }
  EXPECT_LT(hits, 40);
  EXPECT_GT(hits, 30);
  EXPECT_EQ(store->Stats()[0].dropped, 40 - hits);
}

TEST_F(RocksStoreTest, ADamagedManifestStartsAnEmptyStoreAndKeepsTheOld) {
  Bundle bundle = SampleBundle(1);
  ASSERT_TRUE(Open()->PutBundle(bundle).ok());
  ASSERT_GT(FlipBytesInFiles("MANIFEST"), 0);
  auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->started_empty_after_damage());
  EXPECT_FALSE(store->GetPlan({bundle.plan->key}));
  EXPECT_TRUE(std::filesystem::exists(options_.dir + ".corrupt-1700000000"));
  EXPECT_EQ(logger_.LinesWith("store_set_aside").size(), 1u);
  EXPECT_TRUE(store->PutBundle(bundle).ok());
  store.reset();
  ASSERT_GT(FlipBytesInFiles("CURRENT"), 0);
  EXPECT_TRUE(Open()->started_empty_after_damage());
  EXPECT_TRUE(std::filesystem::exists(options_.dir + ".corrupt-1700000000-1"));
  EXPECT_FALSE(std::filesystem::exists(options_.dir + ".corrupt-1700000000")) << "the newest stays";
  EXPECT_EQ(logger_.LinesWith("store_set_aside_removed").size(), 1u);
  EXPECT_GT(Open()->Facts().set_aside_bytes, 40000) << "whenever it was put there";
}

TEST_F(RocksStoreTest, ASecondOpenerGetsAClearError) {
  auto store = Open();
  absl::Status second = RocksStore::Open(options_, logger_, clock_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(second)),
              HasSubstr(StrCat("is open already in process ", getpid())));
  store.reset();
  EXPECT_NE(Open(), nullptr);
}

// Fewer than a bundle has: nothing is written any more. Needs one thread.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    getrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, SIG_IGN);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(RocksStoreTest, AWriteThatFailsShowsAndReadersDoNotWaitForALookAtTheDisk) {
  const Bundle bundle = SampleBundle(1);
  ASSERT_TRUE(Open()->PutBundle(bundle).ok());
  Remove("kernels", bundle.kernels[0]->key);
  std::unique_ptr<RocksStore> store;
  std::future<void> reader;
  int looks = 0;
  options_.free_bytes = [&](const std::string&) -> absl::StatusOr<int64_t> {
    // The first look is before the write, the second behind it. A reader that meets a bad entry
    // needs what a writer holds.
    if (++looks == 2) {
      reader = std::async(std::launch::async,
                          [&] { EXPECT_FALSE(store->GetKernel({bundle.kernels[0]->key})); });
      EXPECT_EQ(reader.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    }
    return int64_t{1} << 40;
  };
  store = Open();
  {
    FileSizeLimit limit;
    EXPECT_FALSE(store->PutBundle(SampleBundle(2)).ok());
  }
  EXPECT_GE(looks, 2);
  EXPECT_TRUE(reader.valid());
  EXPECT_EQ(store->Stats()[0].write_failures, 1);
}

// Holds up who deletes a bad entry, until the others have met it too.
class SlowLogger final : public Logger {
 public:
  SlowLogger() : Logger(LogLevel::kInfo) {}
  int dropped() const { return dropped_; }

 protected:
  void Write(LogLevel /*level*/, const std::string& members) override {
    if (members.find("cache_entry_dropped") == std::string::npos) return;
    ++dropped_;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }

 private:
  std::atomic<int> dropped_{0};
};

TEST_F(RocksStoreTest, AnEntryThatWasMadeAnewSurvivesReadersWhoMetTheBadOne) {
  const Bundle bundle = SampleBundle(1);
  ASSERT_TRUE(Open()->PutBundle(bundle).ok());
  Tamper("kernels", bundle.kernels[0]->key, [](std::string value) {
    value.back() = static_cast<char>(value.back() ^ 1);
    return value;
  });
  SlowLogger logger;
  auto store = RocksStore::Open(options_, logger, clock_).value();
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      if (store->GetKernel({bundle.kernels[0]->key})) return;
      EXPECT_TRUE(store->PutBundle(bundle).ok());  // compiled again
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_TRUE(store->GetKernel({bundle.kernels[0]->key}));
  EXPECT_EQ(logger.dropped(), 1);
  EXPECT_EQ(store->Stats()[0].dropped, 1);
}

TEST_F(RocksStoreTest, ToBeReadOnlyItNeedsNoWriteAndTakesNone) {
  const Bundle bundle = SampleBundle(1);
  ASSERT_TRUE(Open()->PutBundle(bundle).ok());
  options_.read_only = true;
  auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->GetPlan({bundle.plan->key, bundle.plan->full_key})) << "out of the log";
  EXPECT_TRUE(store->GetKernel({bundle.kernels[0]->key}));
  EXPECT_FALSE(store->Stats()[0].writable);
  EXPECT_TRUE(absl::IsFailedPrecondition(store->PutBundle(SampleBundle(2))));
  EXPECT_EQ(store->Stats()[0].plans, 1);
  store.reset();
  std::filesystem::remove_all(options_.dir);
  EXPECT_FALSE(RocksStore::Open(options_, logger_, clock_).ok()) << "there is nothing to read";
}

TEST_F(RocksStoreTest, NothingIsWrittenWhenTheDiskIsNearlyFull) {
  int64_t free = 1000;
  options_.min_free_bytes = 500;
  options_.free_bytes = [&](const std::string&) { return absl::StatusOr<int64_t>(free); };
  auto store = Open();
  ASSERT_TRUE(store->PutBundle(SampleBundle(1)).ok());
  free = 499;
  absl::Status refused = store->PutBundle(SampleBundle(2));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(store->Stats()[0].writable);
  EXPECT_EQ(store->Stats()[0].write_failures, 1);
  EXPECT_TRUE(store->GetPlan({SampleBundle(1).plan->key})) << "reads go on";
  free = 1000;
  EXPECT_TRUE(store->PutBundle(SampleBundle(2)).ok());
  EXPECT_TRUE(store->Stats()[0].writable);
  EXPECT_EQ(logger_.LinesWith("store_writable").size(), 2u);
}

TEST_F(RocksStoreTest, TheBudgetHoldsAndUseDecidesAcrossReopening) {
  options_.budget_bytes = 1 << 20;
  Bundle favourite = SampleBundle(1000);
  {
    auto store = Open();
    ASSERT_TRUE(store->PutBundle(favourite).ok());
    for (int i = 0; i < 20; ++i) {
      clock_.Advance(std::chrono::seconds(1));
      ASSERT_TRUE(store->PutBundle(SampleBundle(i)).ok());
    }
    clock_.Advance(std::chrono::seconds(1));
    EXPECT_TRUE(store->GetPlan({favourite.plan->key}));
    for (const auto& kernel : favourite.kernels) EXPECT_TRUE(store->GetKernel({kernel->key}));
  }
  auto store = Open();  // the time of that use was written when the store closed
  for (int i = 20; i < 30; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_TRUE(store->PutBundle(SampleBundle(i)).ok());
  }
  StoreStats stats = store->Stats()[0];
  EXPECT_LE(stats.bytes, 1 << 20);
  EXPECT_GT(stats.evicted, 5);
  EXPECT_TRUE(store->GetPlan({favourite.plan->key}));
  int old_ones = 0;
  for (int i = 0; i < 5; ++i) {
    for (const auto& kernel : SampleBundle(i).kernels) {
      old_ones += store->GetKernel({kernel->key}) ? 1 : 0;
    }
  }
  EXPECT_LT(old_ones, 3) << "of 10";
  Bundle giant = SampleBundle(7777, size_t{2} << 20);
  EXPECT_EQ(store->PutBundle(giant).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store->Stats()[0].writable);
}

TEST_F(RocksStoreTest, ManyThreads) {
  auto store = Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        Bundle bundle = SampleBundle((i + t) % 8, 2000);
        EXPECT_TRUE(store->PutBundle(bundle).ok());
        Found<KernelArtifact> kernel = store->GetKernel({bundle.kernels[0]->key});
        ASSERT_TRUE(kernel);
        EXPECT_EQ(kernel.value->binary, bundle.kernels[0]->binary);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->Stats()[0].plans, 8);
}

TEST_F(RocksStoreTest, WhatIsListedIsThereHoweverManyWriteAtOnce) {
  // Every large kernel takes the room of the small ones, while others write those again: its batch
  // must not delete what came after it was made up.
  options_.budget_bytes = 1 << 20;
  std::vector<Bundle> large, small;
  for (int i = 0; i < 6; ++i) {
    auto kernel = std::make_shared<KernelArtifact>(SampleKernel(i, 256 << 10));
    kernel->compile_ms = 1e9;  // dear: the small ones go first
    large.push_back({nullptr, {kernel}});
  }
  for (int i = 100; i < 108; ++i) {
    small.push_back({nullptr, {std::make_shared<KernelArtifact>(SampleKernel(i, 2000))}});
  }
  auto store = Open();
  for (size_t round = 0; round < 60; ++round) {
    std::atomic<int> busy{2};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        EXPECT_TRUE(store->PutBundle(large[(round + t * 3) % large.size()]).ok());
        --busy;
      });
      threads.emplace_back([&] {
        for (size_t i = 0; busy > 0; ++i) {
          EXPECT_TRUE(store->PutBundle(small[i % small.size()]).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    int64_t listed = store->Stats()[0].kernels;
    int64_t found = 0;
    for (const auto* bundles : {&large, &small}) {
      for (const Bundle& bundle : *bundles) {
        found += store->GetKernel({bundle.kernels[0]->key}) ? 1 : 0;
      }
    }
    ASSERT_EQ(found, listed) << "round " << round;
  }
  EXPECT_GT(store->Stats()[0].evicted, 0);
}

TEST_F(RocksStoreTest, AnEntryThatIsListedButGoneIsWrittenAgain) {
  Bundle bundle = SampleBundle(1);
  ASSERT_TRUE(Open()->PutBundle(bundle).ok());
  Remove("kernels", bundle.kernels[0]->key);
  auto store = Open();
  EXPECT_EQ(store->Stats()[0].kernels, 2);
  EXPECT_FALSE(store->GetKernel({bundle.kernels[0]->key}));
  EXPECT_EQ(store->Stats()[0].kernels, 1);
  ASSERT_TRUE(store->PutBundle(bundle).ok());  // compiled again
  EXPECT_TRUE(store->GetKernel({bundle.kernels[0]->key}));
}

TEST_F(RocksStoreTest, PlansAreListedNewestFirstAndDamagedOnesLeftOut) {
  std::vector<Bundle> bundles;
  {
    auto store = Open();
    for (int i = 1; i <= 5; ++i) {
      bundles.push_back(SampleBundle(i, 100));
      ASSERT_TRUE(store->PutBundle(bundles.back()).ok());
    }
  }
  Tamper("plans", bundles[2].plan->key, [](std::string value) {
    value.back() = static_cast<char>(value.back() ^ 1);
    return value;
  });
  auto store = Open();
  PlanPage first = store->ListPlans(std::nullopt, 3);
  ASSERT_EQ(first.plans.size(), 2u) << "of three one is damaged";
  EXPECT_EQ(first.plans[0].plan_key, bundles[4].plan->key);
  EXPECT_EQ(first.plans[0].created_unix_ms, 5);
  EXPECT_EQ(first.plans[1].plan_key, bundles[3].plan->key);
  EXPECT_EQ(store->Stats()[0].dropped, 1);
  ASSERT_TRUE(first.last.has_value());
  PlanPage second = store->ListPlans(first.last, 3);
  ASSERT_EQ(second.plans.size(), 2u);
  EXPECT_EQ(second.plans[1].plan_key, bundles[0].plan->key);
  EXPECT_FALSE(second.last.has_value());
  EXPECT_EQ(second.plans[0].distinct_kernels, 2);
}

TEST(Frame, RoundTripsAndSeesDamage) {
  std::string framed = Frame("payload");
  EXPECT_EQ(Unframe(framed).value(), "payload");
  EXPECT_EQ(FrameDigest(framed), Sha256("payload"));
  EXPECT_EQ(Unframe(Frame("")).value(), "");
  for (size_t i = 0; i < framed.size(); ++i) {
    std::string damaged = framed;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(Unframe(damaged).ok()) << i;
    EXPECT_FALSE(Unframe(framed.substr(0, i)).ok()) << i;
  }
}

}  // namespace
}  // namespace fusion
