#include "server/rpc/response_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/base/files/file.h"
#include "core/bundle/tile_search.h"
#include "core/cache/memory/memory_store.h"
#include "core/cache/rocks/rocks_store.h"
#include "core/cache/tiered_store.h"
#include "fusion/v1/fusion_service.pb.h"
#include "tests/support/fake_clock.h"
#include "tests/support/stored_bundle.h"

namespace fusion {
namespace {

v1::PlanFusionRequest Request(const std::string& model, const std::string& id) {
  v1::PlanFusionRequest request;
  request.set_onnx_model(model);
  request.mutable_target()->set_isa("avx2");
  request.set_request_id(id);
  request.set_allow_fused(true);  // behind request_id
  return request;
}

std::optional<RequestName> NameOf(std::string_view bytes) { return NameRequest({bytes}); }

TEST(NameRequest, IsTheSameInWhateverPiecesItComes) {
  const std::string whole = Request(std::string(100, 'm'), "an id").SerializeAsString();
  const auto name = NameOf(whole);
  ASSERT_TRUE(name.has_value());
  const std::string_view view = whole;
  for (size_t a = 0; a <= whole.size(); ++a) {
    for (size_t b = a; b <= whole.size(); b += 7) {
      const auto other = NameRequest({view.substr(0, a), view.substr(a, b - a), view.substr(b)});
      ASSERT_TRUE(other.has_value()) << a << " " << b;
      ASSERT_EQ(other->digest, name->digest) << a << " " << b;
      ASSERT_EQ(other->request_id, "an id");
    }
  }
}

TEST(NameRequest, IsTheSameWhateverIsForLogsOnly) {
  const auto a = NameOf(Request("m", "one").SerializeAsString());
  const auto b = NameOf(Request("m", "two, which is longer").SerializeAsString());
  const auto none = NameOf(Request("m", "").SerializeAsString());
  const auto other = NameOf(Request("n", "one").SerializeAsString());
  ASSERT_TRUE(a && b && none && other);
  EXPECT_EQ(a->digest, b->digest);
  EXPECT_EQ(a->digest, none->digest);
  EXPECT_NE(a->digest, other->digest);
  EXPECT_EQ(a->request_id, "one");
  EXPECT_EQ(b->request_id, "two, which is longer");
  EXPECT_EQ(NameOf(Request("m", std::string(1000, 'x')).SerializeAsString())->request_id.size(),
            kMaxRequestIdBytes);
}

TEST(NameRequest, OfBytesThatAreNoMessageIsNone) {
  EXPECT_EQ(NameOf("\xff\xff\xff"), std::nullopt);
  const std::string whole = Request("model", "id").SerializeAsString();
  int named = 0;
  for (size_t n = 1; n < whole.size(); ++n) named += NameOf(whole.substr(0, n)).has_value();
  EXPECT_LT(named, 8) << "only what ends between fields is a message";
  EXPECT_TRUE(NameOf("").has_value()) << "no field at all";
}

TEST(NameRequest, EveryFieldButRequestIdCounts) {
  const v1::PlanFusionRequest request = Request("m", "id");
  std::set<Digest> seen = {NameOf(request.SerializeAsString())->digest};
  auto add = [&](auto change) {
    v1::PlanFusionRequest changed = request;
    change(changed);
    EXPECT_TRUE(seen.insert(NameOf(changed.SerializeAsString())->digest).second);
  };
  add([](auto& r) { r.mutable_target()->set_threads(3); });
  add([](auto& r) { r.set_mode(v1::PLAN_MODE_PLAN_ONLY); });
  add([](auto& r) { r.set_ready_within_ms(5); });
  add([](auto& r) { r.mutable_hints()->set_batch_size(4); });
  add([](auto& r) { r.mutable_options()->set_debug(true); });
  add([](auto& r) { r.add_dumps(v1::DUMP_KIND_GRAPH); });
  add([](auto& r) { r.set_allow_fused(false); });
  add([](auto& r) { r.set_explain_miss(true); });
}

class ResponseCacheTest : public testing::Test {
 protected:
  ResponseCacheTest() {
    EXPECT_TRUE(store_.PutBundle(bundle_).ok());
    reply_.stored = bundle_.plan;
    for (const auto& kernel : bundle_.kernels) {
      reply_.kernels.push_back(
          {.key = kernel->key, .state = KernelState::kReady, .content = kernel->content});
    }
  }
  bool Known(const std::string& space = "") { return answers_.Find(space, name_) != nullptr; }

  FakeClock clock_;
  MemoryStore store_{1 << 20, Logger::Silent()};
  ResponseCache answers_{store_, 1 << 20, clock_};
  // A plan whose search is over.
  static Bundle Settled() {
    Bundle bundle = SampleBundle(1);
    Plan plan = bundle.plan->plan;
    plan.search = {};
    bundle.plan = std::make_shared<StoredPlan>(MakeStoredPlan("settled", plan, 1));
    return bundle;
  }
  const Bundle bundle_ = Settled();
  const Digest name_ = Sha256("request");
  PlanReply reply_;
};

TEST_F(ResponseCacheTest, GivesTheReplyAgainAsAHit) {
  EXPECT_FALSE(Known());
  answers_.Remember("", name_, reply_);
  std::shared_ptr<const CachedResponse> warm = answers_.Find("", name_);
  ASSERT_NE(warm, nullptr);
  v1::PlanFusionResponse response;
  ASSERT_TRUE(response.ParseFromString(StrCat(warm->reply.head, warm->reply.plan->plan_bytes,
                                              warm->reply.tail,
                                              EncodeFurtherStage({"recall", Nanoseconds(1000)}))));
  EXPECT_EQ(response.cache(), v1::CACHE_OUTCOME_HIT_MEMORY);
  EXPECT_TRUE(response.kernels(0).cached());
  ASSERT_EQ(response.stages_size(), 1);
  EXPECT_EQ(response.stages(0).stage(), "recall");
  EXPECT_FALSE(Known("another tenant")) << "spaces share nothing";
}

TEST_F(ResponseCacheTest, MakingRoomLeavesAQuarterTheLatestOnes) {
  constexpr int64_t kBudget = 1 << 20;
  for (int i = 0; answers_.bytes() <= kBudget / 2; ++i) {
    ASSERT_LT(i, 1'000'000);
    answers_.Remember("", Sha256(StrCat("request ", i)), reply_);
  }
  answers_.Remember("", name_, reply_);
  answers_.MakeRoom();
  EXPECT_GT(answers_.bytes(), 0);
  EXPECT_LE(answers_.bytes(), kBudget / 4);
  EXPECT_TRUE(Known());
}

TEST_F(ResponseCacheTest, IsForgottenWithWhatItNames) {
  answers_.Remember("", name_, reply_);
  EXPECT_TRUE(Known());
  // Other plans put it out of the store: noticed at once, for something was removed.
  for (int i = 2; i < 2000 && store_.HasPlan(bundle_.plan->key); ++i) {
    ASSERT_TRUE(store_.PutBundle(SampleBundle(i)).ok());
  }
  ASSERT_FALSE(store_.HasPlan(bundle_.plan->key));
  EXPECT_FALSE(Known());
  EXPECT_EQ(answers_.size(), 0);
}

// As `invalidate` and `import` of the same keys do it, by whatever way.
TEST_F(ResponseCacheTest, IsForgottenOnceItsKeysStandForOtherBytes) {
  const Digest plan_key = bundle_.plan->key;
  auto with_other_kernel = [this] {
    KernelArtifact kernel = *bundle_.kernels[0];
    kernel.binary += " debug";
    kernel.content = Sha256(kernel.binary);
    return Bundle{.plan = nullptr, .kernels = {std::make_shared<KernelArtifact>(kernel)}};
  };
  auto with_other_plan = [this] {
    Plan plan = bundle_.plan->plan;
    plan.nodes += 1;
    return Bundle{.plan = std::make_shared<StoredPlan>(MakeStoredPlan("settled", plan, 1)),
                  .kernels = {}};
  };
  for (const Bundle& other : {with_other_kernel(), with_other_plan()}) {
    for (const bool forgotten_between : {false, true}) {
      ASSERT_TRUE(store_.PutBundle(bundle_).ok());
      answers_.Remember("", name_, reply_);
      ASSERT_TRUE(Known());
      if (forgotten_between) {
        ASSERT_TRUE(
            store_.Forget({.plans = {plan_key}, .kernels = {bundle_.kernels[0]->key}}).ok());
        ASSERT_TRUE(store_.PutBundle(bundle_).ok());
      }
      ASSERT_TRUE(store_.PutBundle(other).ok());
      EXPECT_FALSE(Known());
      answers_.Remember("", name_, reply_);
      EXPECT_FALSE(Known()) << "an answer that was under way then";
    }
  }
  ASSERT_TRUE(store_.PutBundle(bundle_).ok());
  answers_.Remember("", name_, reply_);
  ASSERT_TRUE(store_.Forget({.all = true}).ok());
  ASSERT_TRUE(store_.PutBundle(bundle_).ok());
  EXPECT_TRUE(Known()) << "the same bytes again are as good";
}

TEST_F(ResponseCacheTest, OfTwoTiersTheOneCountsThatWouldAnswer) {
  const TempDir dir = TempDir::Create(testing::TempDir(), "warm-answers-").value();
  std::atomic<int64_t> free = int64_t{1} << 40;
  RocksStoreOptions options;
  options.dir = dir.path() + "/store";
  options.free_bytes = [&](const std::string&) { return free.load(); };
  auto open = [&] {
    return std::make_unique<TieredStore>(
        std::make_unique<MemoryStore>(1 << 20, Logger::Silent()),
        RocksStore::Open(options, Logger::Silent(), clock_).value(), std::chrono::hours(1));
  };
  std::unique_ptr<TieredStore> store = open();
  ASSERT_TRUE(store->PutBundle(bundle_).ok());
  store = nullptr;
  store = open();  // what is on disk was not looked at yet
  {
    ResponseCache answers(*store, 1 << 20, clock_);
    answers.Remember("", name_, reply_);
    EXPECT_EQ(answers.Find("", name_), nullptr) << "nobody knows what it is";
    ASSERT_TRUE(store->GetPlan({bundle_.plan->key}));
    for (const auto& kernel : bundle_.kernels) ASSERT_TRUE(store->GetKernel({kernel->key}));
    answers.Remember("", name_, reply_);
    EXPECT_NE(answers.Find("", name_), nullptr);
    // What could not be written is in front alone, and what is behind is another one.
    free = 0;
    KernelArtifact kernel = *bundle_.kernels[0];
    kernel.binary += " debug";
    kernel.content = Sha256(kernel.binary);
    EXPECT_FALSE(
        store->PutBundle({.plan = nullptr, .kernels = {std::make_shared<KernelArtifact>(kernel)}})
            .ok());
    EXPECT_EQ(answers.Find("", name_), nullptr);
  }
}

TEST_F(ResponseCacheTest, IsAUseOfPlanAndKernels) {
  answers_.Remember("", name_, reply_);
  for (int i = 2; i < 2000; ++i) {
    ASSERT_TRUE(store_.PutBundle(SampleBundle(i)).ok());
    clock_.Advance(std::chrono::seconds(2));
    ASSERT_TRUE(Known()) << "what is used stays, after " << i << " others";
  }
  EXPECT_GT(store_.Stats()[0].evicted, 0);
}

TEST_F(ResponseCacheTest, KeepsNothingThatMayBeAnotherAnswerNextTime) {
  PlanReply pending = reply_;
  pending.kernels[0].state = KernelState::kPending;
  answers_.Remember("", name_, pending);
  PlanReply failed = reply_;
  failed.kernels[0].state = KernelState::kFailed;
  answers_.Remember("", name_, failed);
  PlanReply dumped = reply_;
  dumped.dumps.push_back({});
  answers_.Remember("", name_, dumped);
  PlanReply explained = reply_;
  explained.miss.emplace();
  answers_.Remember("", name_, explained);
  PlanReply searching = reply_;
  searching.stored = SampleBundle(2).plan;
  ASSERT_TRUE(GoesOn(searching.stored->plan.search));
  answers_.Remember("", name_, searching);
  PlanReply gone = reply_;
  gone.kernels[0].key = Sha256("not stored");
  answers_.Remember("", name_, gone);
  EXPECT_EQ(answers_.size(), 0);
}

TEST_F(ResponseCacheTest, SaysThatItIsNotStoredAsLongAsThatIsSo) {
  const TempDir dir = TempDir::Create(testing::TempDir(), "warm-answers-").value();
  std::atomic<int64_t> free = 0;
  RocksStoreOptions options;
  options.dir = dir.path() + "/store";
  options.min_free_bytes = 1;
  auto disk = RocksStore::Open(options, Logger::Silent(), clock_);
  ASSERT_TRUE(disk.ok()) << disk.status();
  disk->reset();  // it is there; from now on it is full
  options.free_bytes = [&](const std::string&) { return free.load(); };
  disk = RocksStore::Open(options, Logger::Silent(), clock_);
  ASSERT_TRUE(disk.ok()) << disk.status();
  TieredStore store(std::make_unique<MemoryStore>(1 << 20, Logger::Silent()), *std::move(disk),
                    std::chrono::milliseconds(1));
  ResponseCache answers(store, 1 << 20, clock_);
  const absl::Status full = store.PutBundle(bundle_);
  ASSERT_TRUE(absl::IsResourceExhausted(full)) << full;
  reply_.warnings.push_back(StrCat(kNotStored, Message(full)));
  answers.Remember("", name_, reply_);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_NE(answers.Find("", name_), nullptr);
  free = 1;
  for (int i = 0; i < 10'000 && answers.Find("", name_) != nullptr; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(answers.Find("", name_), nullptr) << "its warning is not true any more";
  EXPECT_TRUE(store.WhyUnwritten(bundle_.plan->key).empty());
  reply_.warnings.clear();
  answers.Remember("", name_, reply_);
  EXPECT_NE(answers.Find("", name_), nullptr);
}

}  // namespace
}  // namespace fusion
