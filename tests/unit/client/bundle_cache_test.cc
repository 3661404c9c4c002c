#include "client/bundle_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "client/fusion_request.h"
#include "core/base/files/file.h"
#include "core/base/files/signature.h"
#include "core/bundle/signed_bytes.h"
#include "core/wire/answer.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/plan.h"
#include "core/wire/signature.h"
#include "fusion/v1/fusion_service.pb.h"
#include "tests/support/fake_clock.h"
#include "tests/support/sample_bundle.h"
#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// An answer as a service sends it, its kernels ready.
struct Answer {
  std::string bytes;
  std::vector<FetchedKernel> kernels;
};
Answer MakeAnswer(const std::string& salt, const SigningKey* key = nullptr,
                  size_t kernel_bytes = 1000) {
  const Plan plan = SamplePlan();
  v1::PlanFusionResponse wire;
  EncodePlan(plan, wire.mutable_plan());
  wire.set_plan_key(DigestToWire(Sha256(salt)));
  Binding binding;
  binding.inputs.resize(plan.inputs.size(), "in");
  binding.outputs.resize(ModelOutputs(plan.outputs.size(), plan.output_extents), "out");
  binding.weights.resize(plan.weights.size(), "w");
  binding.nodes.resize(static_cast<size_t>(plan.nodes), "n");
  binding.symbols.resize(plan.symbols.size(), "s");
  EncodeBinding(binding, wire.mutable_binding());
  Answer out;
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    FetchedKernel kernel;
    kernel.key = plan.kernels[i].key;
    kernel.binary = StrCat("object ", i, " ", salt, std::string(kernel_bytes, 'x'));
    kernel.content = Sha256(kernel.binary);
    EncodeKernelStatus({.key = kernel.key, .state = KernelState::kReady, .content = kernel.content},
                       wire.add_kernels());
    out.kernels.push_back(std::move(kernel));
  }
  if (key != nullptr) {
    std::vector<KernelStatus> kernels;
    for (const FetchedKernel& kernel : out.kernels) {
      kernels.push_back(
          {.key = kernel.key, .state = KernelState::kReady, .content = kernel.content});
    }
    EncodeSignature(
        key->Sign(SignedPlanBytes(Sha256(salt), Sha256(wire.plan().SerializeAsString()), kernels)),
        wire.mutable_signature());
  }
  out.bytes = wire.SerializeAsString();
  return out;
}

class BundleCacheTest : public testing::Test {
 protected:
  std::shared_ptr<BundleCache> Open() {
    options_.clock = &clock_;
    absl::StatusOr<std::shared_ptr<BundleCache>> cache = BundleCache::Open(path_, options_);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return cache.ok() ? *cache : nullptr;
  }
  void Store(BundleCache& cache, const std::string& name) {
    const Answer answer = MakeAnswer(name);
    cache.Store(Sha256(name), answer.bytes, answer.kernels);
    clock_.Advance(seconds(1));
  }
  std::vector<std::string> Files(std::string_view prefix = "") {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().filename().string().starts_with(prefix)) out.push_back(entry.path());
    }
    return out;
  }
  int64_t Bytes() {
    int64_t out = 0;
    for (const std::string& file : Files()) {
      out += static_cast<int64_t>(std::filesystem::file_size(file));
    }
    return out;
  }

  ScratchDir dir_;
  const std::string path_ = dir_.path("cache");
  FakeClock clock_;
  BundleCacheOptions options_;
};

TEST_F(BundleCacheTest, WhoAsksForASignatureGetsWhatIsSignedOnly) {
  const SigningKey ours = SigningKey::Parse("k", std::string(64, 'a')).value();
  const SigningKey other = SigningKey::Parse("other", std::string(64, 'b')).value();
  std::shared_ptr<BundleCache> cache = Open();
  auto store = [&](const std::string& name, const SigningKey* key) {
    const Answer answer = MakeAnswer(name, key);
    cache->Store(Sha256(name), answer.bytes, answer.kernels);
  };
  store("signed", &ours);
  EXPECT_TRUE(cache->Find(Sha256("signed"), {ours}).has_value());
  EXPECT_TRUE(cache->Find(Sha256("signed"), {other, ours}).has_value());
  EXPECT_TRUE(cache->Find(Sha256("signed")).has_value()) << "who does not ask";
  store("by another", &other);
  EXPECT_FALSE(cache->Find(Sha256("by another"), {ours}).has_value());
  store("unsigned", nullptr);
  EXPECT_FALSE(cache->Find(Sha256("unsigned"), {ours}).has_value());
  EXPECT_TRUE(cache->Find(Sha256("by another"), {other}).has_value()) << "it stays for others";
  EXPECT_EQ(cache->stats().corrupt, 0);
  store("unsigned", &ours);
  EXPECT_TRUE(cache->Find(Sha256("unsigned"), {ours}).has_value());
  store("by another", &ours);
  EXPECT_TRUE(cache->Find(Sha256("by another"), {ours}).has_value()) << "keys are rotated";
}

TEST_F(BundleCacheTest, GivesBackWhatItWasGiven) {
  Store(*Open(), "a");
  std::shared_ptr<BundleCache> cache = Open();  // another process, as it were
  std::optional<Bundle> found = cache->Find(Sha256("a"));
  ASSERT_TRUE(found.has_value());
  const Answer wanted = MakeAnswer("a");
  EXPECT_EQ(found->reply.plan_key, Sha256("a"));
  ASSERT_EQ(found->kernels.size(), wanted.kernels.size());
  for (size_t i = 0; i < wanted.kernels.size(); ++i) {
    EXPECT_EQ(found->kernels[i].binary, wanted.kernels[i].binary);
    EXPECT_EQ(found->kernels[i].key, wanted.kernels[i].key);
  }
  EXPECT_FALSE(cache->Find(Sha256("b")).has_value());
  EXPECT_EQ(cache->stats().hits, 1);
  EXPECT_EQ(cache->stats().misses, 1);
  EXPECT_EQ(cache->stats().corrupt, 0);
}

TEST_F(BundleCacheTest, OnlyItsUserMayReadAndWrite) {
  Store(*Open(), "a");
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  for (const std::string& file : Files()) {
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << file;
  }
}

TEST_F(BundleCacheTest, RefusesADirectoryThatOthersCanWriteTo) {
  ASSERT_NE(Open(), nullptr);
  for (mode_t mode : {0777u, 0770u, 0702u}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    absl::Status status = BundleCache::Open(path_).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(Message(status)), AllOf(HasSubstr(path_), HasSubstr("0700")));
  }
  ASSERT_EQ(chmod(path_.c_str(), 0755), 0);  // others may look
  EXPECT_TRUE(BundleCache::Open(path_).ok());
}

TEST_F(BundleCacheTest, RefusesWhatAnotherUserOwns) {
  if (geteuid() != 0) GTEST_SKIP() << "files can be given away by root only";
  Store(*Open(), "a");
  const std::string kernel = Files("kernel-")[0];
  ASSERT_EQ(chown(kernel.c_str(), 4711, 4711), 0);
  std::shared_ptr<BundleCache> cache = Open();
  EXPECT_FALSE(cache->Find(Sha256("a")).has_value());
  EXPECT_EQ(cache->stats().corrupt, 1);
  EXPECT_FALSE(std::filesystem::exists(kernel));
  ASSERT_EQ(chown(path_.c_str(), 4711, 4711), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(BundleCache::Open(path_).status()));
}

TEST_F(BundleCacheTest, EveryCutAndEveryFlippedByteOfAPlanIsAMiss) {
  Store(*Open(), "a");
  const std::string file = Files("plan-")[0];
  const std::string good = ReadFile(file, 1 << 20).value();
  std::shared_ptr<BundleCache> cache = Open();
  int64_t corrupt = 0;
  auto expect_miss = [&](const std::string& bytes) {
    ASSERT_TRUE(WriteFile(file, bytes).ok());
    EXPECT_FALSE(cache->Find(Sha256("a")).has_value());
    EXPECT_EQ(cache->stats().corrupt, ++corrupt);
    EXPECT_FALSE(std::filesystem::exists(file));
  };
  const size_t step = std::max<size_t>(1, good.size() / 97);
  for (size_t at = 0; at < good.size(); at += step) {
    expect_miss(good.substr(0, at));
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    expect_miss(flipped);
  }
  // Bytes that have their digest and are no plan.
  for (const std::string& nonsense : {std::string(), std::string("\xff\xff\xff"), good}) {
    const Digest digest = Sha256(nonsense);
    expect_miss(StrCat(good.substr(0, 15), BytesOf(digest), nonsense));
  }
  ASSERT_TRUE(WriteFile(file, good).ok());
  EXPECT_TRUE(cache->Find(Sha256("a")).has_value());
}

TEST_F(BundleCacheTest, OddFilesUnderItsNamesAreMisses) {
  Store(*Open(), "a");
  const std::string file = Files("kernel-")[0];
  std::shared_ptr<BundleCache> cache = Open();
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);  // does not block
  EXPECT_FALSE(cache->Find(Sha256("a")).has_value());
  std::filesystem::create_directory(file);
  EXPECT_FALSE(cache->Find(Sha256("a")).has_value());
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/zero", file);
  EXPECT_FALSE(cache->Find(Sha256("a")).has_value());
  EXPECT_FALSE(std::filesystem::is_symlink(file));
}

TEST_F(BundleCacheTest, WhatWasUsedLongestAgoGoesFirst) {
  Store(*Open(), "a");
  const int64_t one = Bytes();
  options_.max_bytes = 3 * one + one / 2;
  std::shared_ptr<BundleCache> cache = Open();
  Store(*cache, "b");
  Store(*cache, "c");
  ASSERT_TRUE(cache->Find(Sha256("a")).has_value());  // used
  clock_.Advance(seconds(1));
  Store(*cache, "d");
  EXPECT_FALSE(cache->Find(Sha256("b")).has_value());
  EXPECT_TRUE(cache->Find(Sha256("a")).has_value());
  EXPECT_TRUE(cache->Find(Sha256("d")).has_value());
  EXPECT_GT(cache->stats().evicted, 0);
  EXPECT_LE(Bytes(), options_.max_bytes);
  // Evicted while another process evicts: nothing, and nobody waits.
  const int fd = open(StrCat(path_, "/lock").c_str(), O_RDWR);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  const int64_t evicted = cache->stats().evicted;
  for (const char* name : {"e", "f", "g"}) Store(*cache, name);
  EXPECT_EQ(cache->stats().evicted, evicted);
  close(fd);
  Store(*cache, "h");
  EXPECT_LE(Bytes(), options_.max_bytes);
}

// Of two models that do not fit both, the kernels go in turn and the plans, which are short, stay.
TEST_F(BundleCacheTest, KernelsThatComeBackToTheirPlanEvictOthers) {
  constexpr size_t kKernelBytes = 100'000;  // two a model
  options_.max_bytes = 3 * kKernelBytes;
  std::shared_ptr<BundleCache> cache = Open();
  for (int round = 0; round < 3; ++round) {
    for (const char* name : {"a", "b"}) {
      const Answer answer = MakeAnswer(name, nullptr, kKernelBytes);
      cache->Store(Sha256(name), answer.bytes, answer.kernels);
      EXPECT_LE(Bytes(), options_.max_bytes) << name << " in round " << round;
      EXPECT_TRUE(cache->Find(Sha256(name)).has_value());
      clock_.Advance(seconds(1));
    }
    EXPECT_EQ(Files("plan-").size(), 2u);
  }
}

TEST_F(BundleCacheTest, AnswersThatDifferInTimesAloneAreWrittenOnce) {
  std::shared_ptr<BundleCache> cache = Open();
  Store(*cache, "a");
  const int64_t stored = cache->stats().stored;
  Answer again = MakeAnswer("a");
  v1::PlanFusionResponse wire;
  ASSERT_TRUE(wire.ParseFromString(again.bytes));
  wire.add_stages()->set_stage("plan");
  cache->Store(Sha256("a"), wire.SerializeAsString(), again.kernels);
  EXPECT_EQ(cache->stats().stored, stored);
  wire.set_plan_key(DigestToWire(Sha256("another plan")));
  cache->Store(Sha256("a"), wire.SerializeAsString(), again.kernels);
  EXPECT_EQ(cache->stats().stored, stored + 1);
}

TEST_F(BundleCacheTest, KernelsAreSharedByPlans) {
  std::shared_ptr<BundleCache> cache = Open();
  const Answer answer = MakeAnswer("a");
  cache->Store(Sha256("one"), answer.bytes, answer.kernels);
  cache->Store(Sha256("two"), answer.bytes, answer.kernels);
  EXPECT_EQ(Files("plan-").size(), 2u);
  EXPECT_EQ(Files("kernel-").size(), answer.kernels.size());
}

// A disk that takes no more, as far as this process is concerned.
TEST_F(BundleCacheTest, AFullDiskIsOneWarning) {
  std::vector<std::string> warnings;
  options_.warn = [&](const std::string& text) { warnings.push_back(text); };
  std::shared_ptr<BundleCache> cache = Open();
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit little{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  Store(*cache, "a");
  Store(*cache, "b");
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr(path_));
  EXPECT_GT(cache->stats().failed_writes, 1);
  EXPECT_THAT(Files("new-"), testing::IsEmpty());
  EXPECT_FALSE(cache->Find(Sha256("a")).has_value());
  Store(*cache, "a");
  EXPECT_TRUE(cache->Find(Sha256("a")).has_value());
}

TEST_F(BundleCacheTest, ADirectoryThatWentIsAMissAndAWarning) {
  int warnings = 0;
  options_.warn = [&](const std::string&) { ++warnings; };
  std::shared_ptr<BundleCache> cache = Open();
  std::filesystem::remove_all(path_);
  Store(*cache, "a");
  EXPECT_FALSE(cache->Find(Sha256("a")).has_value());
  EXPECT_EQ(warnings, 1);
}

TEST_F(BundleCacheTest, WhatADeadProcessLeftIsClearedAway) {
  std::shared_ptr<BundleCache> cache = Open();
  ASSERT_TRUE(WriteFile(StrCat(path_, "/new-1-1"), "half a ker").ok());
  ASSERT_TRUE(WriteFile(StrCat(path_, "/mine"), "of somebody else").ok());
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, StrCat(path_, "/new-1-1").c_str(), old, 0), 0);
  for (int i = 0; i < 20; ++i) Store(*cache, StrCat("m", i));
  EXPECT_THAT(Files("new-"), testing::IsEmpty());
  EXPECT_EQ(Files("mine").size(), 1u);
}

TEST(RequestDigest, IsOfWhatDecidesTheAnswer) {
  FusionRequest request;
  request.onnx_model = "model";
  request.target.isa = "avx2";
  request.options.dim_bindings = {{"a", 1}, {"b", 2}, {"c", 3}};
  const Digest base = RequestDigest(request).value();
  request.request_id = "another";
  request.model_name = "bert";
  EXPECT_EQ(RequestDigest(request).value(), base);
  std::vector<Digest> others;
  auto change = [&](const std::function<void(FusionRequest*)>& by) {
    FusionRequest other = request;
    by(&other);
    others.push_back(RequestDigest(other).value());
  };
  change([](FusionRequest* r) { r->onnx_model = "modem"; });
  change([](FusionRequest* r) { r->target.threads = 7; });
  change([](FusionRequest* r) { r->target.isa = "avx512"; });
  change([](FusionRequest* r) { r->options.numerics = Numerics::kBitwise; });
  change([](FusionRequest* r) { r->options.hints.low_latency = true; });
  change([](FusionRequest* r) { r->options.dim_bindings["a"] = 9; });
  change([](FusionRequest* r) { r->allow_fused = true; });
  change([](FusionRequest* r) { r->options.custom_ops = "op a.B(x) = x"; });
  others.push_back(base);
  std::sort(others.begin(), others.end());
  EXPECT_EQ(std::adjacent_find(others.begin(), others.end()), others.end());
  request.op_graph = nullptr;
  request.onnx_model.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(RequestDigest(request).status()));
}

}  // namespace
}  // namespace fusion
