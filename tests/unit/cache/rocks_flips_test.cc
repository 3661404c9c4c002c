// One flipped bit anywhere in the files of a store: whatever is read is right or a miss, and what a
// read met is counted. FUSION_FLIP_ROUNDS (default 40) says how many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/base/files/file.h"
#include "core/cache/rocks/rocks_store.h"
#include "core/wire/kernel.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;

struct Flip {
  fs::path file;
  uint64_t at = 0;
};

// Any bit of all files alike.
Flip FlipABit(const std::string& dir, std::mt19937_64* random) {
  std::vector<fs::path> files;
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(dir)) {
    if (!file.is_regular_file()) continue;
    files.push_back(file.path());
    bytes += file.file_size();
  }
  std::sort(files.begin(), files.end());
  Flip flip{.file = {}, .at = (*random)() % bytes};
  for (const fs::path& file : files) {
    flip.file = file;
    if (flip.at < fs::file_size(file)) break;
    flip.at -= fs::file_size(file);
  }
  std::fstream stream(flip.file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(flip.at));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(flip.at));
  stream.put(static_cast<char>(byte ^ (1 << ((*random)() % 8))));
  return flip;
}

TEST(RocksFlips, EveryReadIsRightOrACountedMiss) {
  TempDir parent = TempDir::Create(testing::TempDir(), "rocks-flips-").value();
  RocksStoreOptions options;
  options.min_free_bytes = 0;
  std::vector<Bundle> bundles;
  for (int i = 0; i < 6; ++i) {
    Bundle bundle;
    bundle.plan =
        std::make_shared<StoredPlan>(MakeStoredPlan(StrCat("graph ", i), SamplePlan(), i));
    for (int k = 0; k < 2; ++k) {
      bundle.kernels.push_back(std::make_shared<KernelArtifact>(SampleKernel(i * 2 + k, 8000)));
    }
    bundles.push_back(std::move(bundle));
  }
  // Half of it in files, half of it in the log; and all of it in files.
  for (const char* form : {"log", "files"}) {
    options.dir = StrCat(parent.path(), "/", form);
    for (size_t i = 0; i < bundles.size(); ++i) {
      if (i > 0 && i != bundles.size() / 2) continue;
      auto store = RocksStore::Open(options, Logger::Silent()).value();
      for (size_t j = i; j < i + bundles.size() / 2; ++j) {
        ASSERT_TRUE(store->PutBundle(bundles[j]).ok());
      }
    }
  }
  RocksStore::Open(options, Logger::Silent()).value().reset();
  const char* text = std::getenv("FUSION_FLIP_ROUNDS");
  const int rounds = text != nullptr ? std::atoi(text) : 40;
  std::mt19937_64 random(17);
  int met = 0, lost = 0, empty = 0;
  for (int round = 0; round < rounds; ++round) {
    RocksStoreOptions flipped = options;
    flipped.dir = parent.path() + "/flipped";
    fs::remove_all(flipped.dir);
    fs::copy(StrCat(parent.path(), round % 2 == 0 ? "/log" : "/files"), flipped.dir);
    const Flip flip = FlipABit(flipped.dir, &random);
    const std::string where = StrCat(flip.file.filename().string(), " byte ", flip.at);
    auto store = RocksStore::Open(flipped, Logger::Silent());
    ASSERT_TRUE(store.ok()) << where << ": " << store.status();
    int misses = 0;
    for (const Bundle& bundle : bundles) {
      Found<StoredPlan> plan = (*store)->GetPlan({bundle.plan->key, bundle.plan->full_key});
      misses += !plan;
      if (plan) {
        ASSERT_EQ(plan.value->plan_bytes, bundle.plan->plan_bytes) << where;
      }
      for (const auto& kernel : bundle.kernels) {
        Found<KernelArtifact> found = (*store)->GetKernel({kernel->key, kernel->full_key});
        misses += !found;
        if (found) {
          ASSERT_EQ(EncodeArtifact(*found.value), EncodeArtifact(*kernel)) << where;
        }
      }
    }
    const StoreStats stats = (*store)->Stats()[0];
    const bool counted = stats.dropped > 0 || (*store)->started_empty_after_damage();
    EXPECT_TRUE(misses == 0 || counted) << where << ": " << misses << " misses, none counted";
    met += counted;
    lost += misses;
    empty += (*store)->started_empty_after_damage();
    for (const Bundle& bundle : bundles) {  // made again
      EXPECT_TRUE((*store)->PutBundle(bundle).ok()) << where;
      EXPECT_TRUE((*store)->GetKernel({bundle.kernels[0]->key})) << where;
    }
    store->reset();
    for (const auto& left : fs::directory_iterator(parent.path())) {
      if (left.path().filename().string().find(".corrupt-") != std::string::npos) {
        fs::remove_all(left.path());
      }
    }
  }
  std::printf("%d flips: %d met and counted, %d of them put the store aside, %d entries missed\n",
              rounds, met, empty, lost);
  EXPECT_GT(met, rounds / 4);
}

}  // namespace
}  // namespace fusion
