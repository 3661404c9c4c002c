#include "core/cache/tiered_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/cache/memory/memory_store.h"
#include "tests/support/stored_bundle.h"

namespace fusion {
namespace {

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

TEST(TieredStore, MakingRoomLosesNothingThatIsBehind) {
  auto front = std::make_unique<MemoryStore>(20'000, Logger::Silent());
  const MemoryStore& memory = *front;
  TieredStore store(std::move(front), std::make_unique<MemoryStore>(1 << 20, Logger::Silent()));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store.PutBundle(SampleBundle(i)).ok());
  const int64_t before = memory.CachedBytes();
  store.TrimMemory();
  EXPECT_LE(memory.CachedBytes(), 5'000);
  EXPECT_LT(memory.CachedBytes(), before);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(store.GetPlan({SampleBundle(i).plan->key})) << i;
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
  std::optional<Digest> ContentOf(EntryKind /*kind*/, const Digest& /*key*/) const override {
    return std::nullopt;
  }
  bool Touch(const Digest& /*plan*/, const std::vector<Digest>& /*kernels*/) override {
    return false;
  }
  int64_t removals() const override { return 0; }
  absl::Status PutBundle(const Bundle& bundle) override {
    if (on_put) on_put(bundle);
    if (full) {
      full = !empties_itself;
      return ResourceExhausted("full");
    }
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

  std::function<void(const Bundle&)> on_put;
  std::atomic<bool> full = true;
  bool empties_itself = false;     // when a bundle was refused
  std::string refused = "nobody";  // tenant
  std::vector<Bundle> taken;
};

TEST(TieredStore, TheFrontRemembersWhatTheDiskCouldNot) {
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()),
                    std::make_unique<FullStore>());
  Bundle bundle = SampleBundle(1);
  EXPECT_EQ(store.PutBundle(bundle).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store.GetPlan({bundle.plan->key, bundle.plan->full_key}));
}

// A store in front of a disk that takes nothing until it is told to.
class LateWritesTest : public testing::Test {
 protected:
  explicit LateWritesTest(Nanoseconds pause = std::chrono::milliseconds(1)) {
    auto front = std::make_unique<MemoryStore>(1 << 20, Logger::Silent());
    auto back = std::make_unique<FullStore>();
    memory_ = front.get();
    disk_ = back.get();
    disk_->on_put = [this](const Bundle&) { ++puts_; };
    store_ = std::make_unique<TieredStore>(std::move(front), std::move(back), pause);
  }
  static Bundle BundleOf(const std::string& tenant, int seed = 1) {
    Bundle bundle = SampleBundle(seed);
    bundle.tenant = tenant;
    return bundle;
  }
  // What it says for as long as some fifty tries take.
  std::string WhyAfterTries(const Bundle& bundle) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return store_->WhyUnwritten(bundle.plan->key);
  }
  // Begins to write what could not be written; the write takes as long as another one would.
  void BeginSlowLateWrite() {
    disk_->on_put = [this](const Bundle&) {
      if (!begun_.exchange(true)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
    disk_->full = false;
    while (!begun_) std::this_thread::yield();
  }
  // Waits until nothing more is to be written of it.
  bool IsDone(const Bundle& bundle) const {
    const Digest& plan = bundle.plan->key;
    for (int i = 0; i < 10'000 && !store_->WhyUnwritten(plan).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return store_->WhyUnwritten(plan).empty();
  }

  std::atomic<int> puts_ = 0;
  std::atomic<bool> begun_ = false;
  MemoryStore* memory_;
  FullStore* disk_;
  std::unique_ptr<TieredStore> store_;  // ends before what it counts in
};

// That tries again only at its end.
class LastWriteTest : public LateWritesTest {
 protected:
  LastWriteTest() : LateWritesTest(std::chrono::hours(1)) {}
};

TEST_F(LateWritesTest, WhatTheDiskCouldNotTakeIsWrittenOnceItCan) {
  const Bundle bundle = BundleOf("acme");
  EXPECT_FALSE(store_->PutBundle(bundle).ok());
  EXPECT_EQ(WhyAfterTries(bundle), "full");
  EXPECT_EQ(WhyAfterTries(SampleBundle(2)), "") << "nothing is known of others";
  EXPECT_EQ(store_->Stats().back().unwritten_plans, 1);
  disk_->full = false;
  ASSERT_TRUE(IsDone(bundle));
  ASSERT_EQ(disk_->taken.size(), 1u);
  EXPECT_EQ(disk_->taken[0].plan, bundle.plan);
  EXPECT_EQ(disk_->taken[0].kernels, bundle.kernels);
  EXPECT_EQ(disk_->taken[0].tenant, "acme");
  EXPECT_EQ(store_->Stats().back().unwritten_plans, 0);
}

TEST_F(LateWritesTest, WhatMemoryHasForgottenMeanwhileIsNotWritten) {
  const Bundle no_kernel = SampleBundle(1);
  const Bundle no_plan = SampleBundle(2);
  for (const Bundle& bundle : {no_kernel, no_plan}) EXPECT_FALSE(store_->PutBundle(bundle).ok());
  ASSERT_TRUE(memory_->Forget({.kernels = {no_kernel.kernels[0]->key}}).ok());
  ASSERT_TRUE(memory_->Forget({.plans = {no_plan.plan->key}}).ok());
  EXPECT_TRUE(IsDone(no_plan)) << "there is nothing of it to write";
  EXPECT_EQ(store_->Stats().back().unwritten_plans, 1);
  disk_->full = false;
  ASSERT_TRUE(IsDone(no_kernel));
  ASSERT_EQ(disk_->taken.size(), 1u);
  EXPECT_EQ(disk_->taken[0].plan, no_kernel.plan);
  EXPECT_EQ(disk_->taken[0].kernels, std::vector{no_kernel.kernels[1]});
}

TEST_F(LateWritesTest, WhatIsNotEvenInMemoryIsNotAwaited) {
  TieredStore store(std::make_unique<MemoryStore>(1, Logger::Silent()),
                    std::make_unique<FullStore>());
  EXPECT_FALSE(store.PutBundle(SampleBundle(1)).ok());
  EXPECT_EQ(store.Stats().back().unwritten_plans, 0);
}

TEST_F(LateWritesTest, WhatIsPublishedTwiceIsWrittenWithAllAndForWhoCameFirst) {
  const Bundle first = BundleOf("acme");
  const Bundle second = {.plan = first.plan, .kernels = SampleBundle(2).kernels};  // by its search
  for (const Bundle& bundle : {first, second}) EXPECT_FALSE(store_->PutBundle(bundle).ok());
  disk_->full = false;
  ASSERT_TRUE(IsDone(first));
  ASSERT_EQ(disk_->taken.size(), 1u);
  EXPECT_EQ(disk_->taken[0].tenant, "acme");
  EXPECT_EQ(disk_->taken[0].kernels.size(), 4u);
}

TEST_F(LateWritesTest, WhatIsRefusedForItselfIsNotTriedAgain) {
  disk_->full = false;
  disk_->refused = "acme";
  const Bundle bundle = BundleOf("acme");
  EXPECT_FALSE(store_->PutBundle(bundle).ok());
  for (int i = 0; i < 10'000 && store_->Stats().back().unwritten_plans > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(WhyAfterTries(bundle), "no room for acme");
  EXPECT_EQ(puts_, 3);
  EXPECT_EQ(store_->Stats().back().unwritten_plans, 0) << "it does not wait for anything";
}

TEST_F(LateWritesTest, RoomThatComesJustAfterATryFailedForWantOfItIsUsed) {
  disk_->empties_itself = true;
  const Bundle bundle = BundleOf("acme");
  EXPECT_FALSE(store_->PutBundle(bundle).ok());
  EXPECT_TRUE(IsDone(bundle));
  EXPECT_EQ(puts_, 2);
  EXPECT_EQ(disk_->taken.size(), 1u);
}

// Another plan of that key is published while the first is written late.
TEST_F(LateWritesTest, WhatIsWrittenLateDoesNotTakeThePlaceOfWhatCameSince) {
  const Bundle first = BundleOf("acme");
  auto tuned = std::make_shared<StoredPlan>(*first.plan);
  tuned->created_unix_ms += 1;
  const Bundle second = {.plan = tuned, .kernels = first.kernels};
  EXPECT_FALSE(store_->PutBundle(first).ok());
  BeginSlowLateWrite();
  ASSERT_TRUE(store_->PutBundle(second).ok());
  EXPECT_EQ(WhyAfterTries(first), "");
  EXPECT_EQ(disk_->taken.back().plan, second.plan);
}

TEST_F(LateWritesTest, WhatIsForgottenIsNotWrittenLater) {
  const Bundle bundle = SampleBundle(1);
  EXPECT_FALSE(store_->PutBundle(bundle).ok());
  ASSERT_TRUE(store_->Forget({.all = true}).ok());
  EXPECT_EQ(store_->WhyUnwritten(bundle.plan->key), "");
  EXPECT_EQ(store_->Stats().back().unwritten_plans, 0);
  disk_->full = false;
  EXPECT_EQ(WhyAfterTries(bundle), "");
  EXPECT_TRUE(disk_->taken.empty());
}

TEST_F(LastWriteTest, AnEndTriesOnceMore) {
  EXPECT_FALSE(store_->PutBundle(SampleBundle(1)).ok());
  disk_->full = false;
  store_.reset();
  EXPECT_EQ(puts_, 2);
}

// The same kernel with what a search has found out about it, published while the first is written
// late.
TEST_F(LateWritesTest, AKernelThatIsWrittenLateDoesNotTakeThePlaceOfWhatASearchFound) {
  const Bundle first = BundleOf("acme");
  auto timed = std::make_shared<KernelArtifact>(*first.kernels[0]);
  timed->searches.emplace_back();
  EXPECT_FALSE(store_->PutBundle(first).ok());
  BeginSlowLateWrite();
  ASSERT_TRUE(store_->PutBundle({.plan = nullptr, .kernels = {timed}}).ok());
  EXPECT_EQ(WhyAfterTries(first), "");
  EXPECT_EQ(disk_->taken.back().kernels, (decltype(first.kernels){timed}));
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

TEST_F(LastWriteTest, APlanIsWrittenWithKernelsThatCouldNotBeWrittenBefore) {
  const Bundle first = SampleBundle(1);
  EXPECT_FALSE(store_->PutBundle(first).ok());
  disk_->full = false;
  const Bundle second = SharingWith(first);
  for (size_t kernels : {size_t{2}, size_t{1}}) {  // once
    ASSERT_TRUE(store_->PutBundle(second).ok());
    ASSERT_EQ(disk_->taken.back().kernels.size(), kernels);
  }
  EXPECT_EQ(disk_->taken.front().kernels[1], first.kernels[0]);
}

// The first's kernel, which is in front alone, and is forgotten while it goes behind with a plan
// that shares it.
TEST_F(LastWriteTest, WhatIsForgottenDoesNotComeBackWithAPlanThatSharesIt) {
  const Bundle first = SampleBundle(1);
  EXPECT_FALSE(store_->PutBundle(first).ok());
  disk_->full = false;
  const Bundle second = SharingWith(first);
  std::thread forgets;
  disk_->on_put = [&](const Bundle&) {
    forgets = std::thread([&] { EXPECT_TRUE(store_->Forget({.all = true}).ok()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits, or would be done
  };
  ASSERT_TRUE(store_->PutBundle(second).ok());
  forgets.join();
  EXPECT_FALSE(disk_->HasKernel(first.kernels[0]->key));
  EXPECT_FALSE(store_->HasPlan(second.plan->key));
}

TEST_F(LastWriteTest, WhatIsForgottenInFrontAloneCountsAsRemoved) {
  const Bundle bundle = SampleBundle(1);
  store_->PutBundle(bundle).IgnoreError();
  const int64_t before = store_->removals();
  ASSERT_TRUE(store_->Forget({.all = true}).ok());
  EXPECT_FALSE(store_->HasPlan(bundle.plan->key));
  EXPECT_GT(store_->removals(), before);
}

TEST_F(LastWriteTest, WhatIsForgottenWhileItIsWrittenIsNotLeftInFront) {
  // Behind, everything is forgotten just after it was written, and before the front has it.
  disk_->on_put = [&](const Bundle&) { EXPECT_TRUE(store_->Forget({.all = true}).ok()); };
  const Bundle bundle = SampleBundle(1);
  store_->PutBundle(bundle).IgnoreError();
  EXPECT_FALSE(store_->GetPlan({bundle.plan->key}));
  for (const auto& kernel : bundle.kernels) EXPECT_FALSE(store_->GetKernel({kernel->key}));
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

}  // namespace
}  // namespace fusion
