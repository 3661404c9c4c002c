#include "core/cache/store_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "core/base/files/file.h"
#include "core/cache/memory/memory_store.h"
#include "core/cache/rocks/rocks_store.h"
#include "core/wire/kernel.h"
#include "tests/support/archive_frames.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

SigningKey KeyOf(const std::string& id, char digit) {
  return SigningKey::Parse(id, std::string(64, digit)).value();
}

class StoreArchiveTest : public testing::Test {
 protected:
  // A plan of two kernels of its own.
  static Bundle MakeBundle(int seed, size_t binary_bytes = 3000) {
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

  void SetUp() override {
    for (int seed : {1, 2}) {
      bundles_.push_back(MakeBundle(seed));
      ASSERT_TRUE(store_.PutBundle(bundles_.back()).ok());
    }
  }

  std::string Export(const SigningKey* key, std::vector<Digest> plans = {}) {
    if (plans.empty()) plans = {bundles_[0].plan->key, bundles_[1].plan->key};
    ArchiveWriter::Sign sign;
    if (key != nullptr) sign = [key](std::string_view bytes) { return key->Sign(bytes); };
    ArchiveWriter writer(store_, std::move(plans), std::move(sign));
    std::string bytes;
    for (std::string part = writer.Next(); !part.empty(); part = writer.Next()) bytes += part;
    return bytes;
  }
  absl::StatusOr<ImportOutcome> Import(const std::string& bytes, ArchiveTrust trust = {}) {
    copy_ = std::make_unique<MemoryStore>(int64_t{1} << 30, Logger::Silent());
    ArchiveImport import(*copy_, std::move(trust));
    RETURN_IF_ERROR(import.Add(bytes));
    return import.Finish();
  }
  // Whether the copy has anything of the bundles.
  bool CopyIsEmpty() const {
    const StoreStats stats = copy_->Stats()[0];
    return stats.plans == 0 && stats.kernels == 0;
  }
  // The first kernel of the file becomes another one that is sound in itself.
  static std::string WithForeignKernel(const std::string& archive) {
    std::vector<ArchivedFrame> frames = FramesOf(archive);
    for (ArchivedFrame& frame : frames) {
      if (frame.type != 'K') continue;
      KernelArtifact kernel = DecodeArtifact(frame.payload).value();
      kernel.binary += "foreign code";
      kernel.content = Sha256(kernel.binary);
      kernel.check.verified = true;
      frame.payload = EncodeArtifact(kernel);
      break;
    }
    return ArchiveOf(frames);
  }

  const SigningKey ours_ = KeyOf("ours", 'a');
  MemoryStore store_{int64_t{1} << 30, Logger::Silent()};
  std::vector<Bundle> bundles_;
  std::unique_ptr<MemoryStore> copy_;
};

TEST_F(StoreArchiveTest, ASignedArchiveBringsPlansWithTheirKernelsOnce) {
  const TempDir dir = TempDir::Create(testing::TempDir(), "store-archive-").value();
  RocksStoreOptions options;
  options.dir = dir.path() + "/from";
  auto store = RocksStore::Open(options, Logger::Silent()).value();
  Bundle a = MakeBundle(1, 20000), b = MakeBundle(2, 20000);
  a.tenant = "shop";
  ASSERT_TRUE(store->PutBundle(a).ok());
  ASSERT_TRUE(store->PutBundle(b).ok());
  auto exported = [&](Store& from) {
    ArchiveWriter writer(from, {a.plan->key, b.plan->key, Sha256("absent")},
                         [this](std::string_view bytes) { return ours_.Sign(bytes); });
    std::string bytes;
    for (std::string part = writer.Next(); !part.empty(); part = writer.Next()) bytes += part;
    return bytes;
  };
  const std::string bytes = exported(*store);
  options.dir = dir.path() + "/to";
  auto copy = RocksStore::Open(options, Logger::Silent()).value();
  for (size_t cut : {size_t{1}, size_t{977}, bytes.size()}) {
    ArchiveImport import(*copy, {.keys = {ours_}});
    for (size_t at = 0; at < bytes.size(); at += cut) {
      absl::Status added = import.Add(std::string_view(bytes).substr(at, cut));
      ASSERT_TRUE(added.ok()) << added;
    }
    absl::StatusOr<ImportOutcome> outcome = import.Finish();
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->plans, cut == 1 ? 2 : 0);
    EXPECT_EQ(outcome->kernels, cut == 1 ? 4 : 0);
    EXPECT_EQ(outcome->known, cut == 1 ? 0 : 2);
    EXPECT_EQ(outcome->refused_plans, 0);
    EXPECT_EQ(outcome->remade, 0);
  }
  EXPECT_EQ(copy->TenantOf(a.plan->key), "shop");
  EXPECT_EQ(copy->GetPlan({b.plan->key, b.plan->full_key}).value->plan_bytes, b.plan->plan_bytes);
  EXPECT_EQ(copy->GetKernel({a.kernels[1]->key}).value->binary, a.kernels[1]->binary);
  EXPECT_EQ(exported(*copy), bytes);
}

TEST_F(StoreArchiveTest, NothingOfAnArchiveThatNobodyVouchesForIsStored) {
  const SigningKey theirs = KeyOf("theirs", 'b');
  for (const std::string& archive : {Export(nullptr), Export(&theirs)}) {
    const ImportOutcome outcome = Import(archive, {.keys = {ours_}}).value();
    EXPECT_EQ(outcome.plans, 0);
    EXPECT_EQ(outcome.refused_plans, 2);
    EXPECT_THAT(outcome.refused[0].reason, StartsWith("imported, unverified: "));
    EXPECT_TRUE(CopyIsEmpty());
  }
}

TEST_F(StoreArchiveTest, WhatNobodyVouchesForIsMadeAgainFromItsKeyAndCompared) {
  std::vector<ClaimedPlan> claims;
  ArchiveTrust trust;
  trust.remake = [&](const ClaimedPlan& claimed) -> absl::StatusOr<RemadePlan> {
    claims.push_back(claimed);
    if (claims.size() == 1) return RemadePlan{.kernels = 2, .refused = ""};
    return RemadePlan{.kernels = 0, .refused = "it is another one"};
  };
  const ImportOutcome outcome = Import(Export(nullptr), trust).value();
  EXPECT_EQ(outcome.plans, 1);
  EXPECT_EQ(outcome.remade, 1);
  EXPECT_EQ(outcome.kernels, 2);
  EXPECT_EQ(outcome.refused_plans, 1);
  EXPECT_EQ(outcome.refused[0].name, bundles_[1].plan->key.ToHex());
  EXPECT_EQ(outcome.refused[0].reason, "it is another one");
  EXPECT_TRUE(CopyIsEmpty()) << "storing what was made is up to who makes it";
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(claims[0].plan.full_key, "graph 1");
  EXPECT_EQ(claims[0].plan.content, bundles_[0].plan->content);
  for (size_t i : {0, 1}) {
    for (const auto& kernel : bundles_[i].kernels) {
      EXPECT_EQ(claims[i].kernels.at(kernel->key), kernel->content);
    }
  }
  trust.remake = [](const ClaimedPlan&) -> absl::StatusOr<RemadePlan> { return Cancelled("over"); };
  EXPECT_TRUE(absl::IsCancelled(Import(Export(nullptr), trust).status()));
}

TEST_F(StoreArchiveTest, AKernelThatWasChangedAfterItsSigningIsRefusedWithItsPlan) {
  const std::string changed = WithForeignKernel(Export(&ours_));
  const ImportOutcome outcome = Import(changed, {.keys = {ours_}}).value();
  EXPECT_EQ(outcome.plans, 1) << "the other one";
  EXPECT_EQ(outcome.refused_plans, 1);
  EXPECT_THAT(outcome.refused[0].reason,
              HasSubstr("the signature is not that of the key \"ours\""));
  EXPECT_FALSE(copy_->HasPlan(bundles_[0].plan->key));
  EXPECT_FALSE(copy_->HasKernel(bundles_[0].kernels[0]->key));
}

TEST_F(StoreArchiveTest, ASignatureIsOfOneFrameOfItsKindAndOfNoOther) {
  const std::string kernel = EncodeArtifact(*bundles_[0].kernels[0]);
  const std::string header =
      Export(&ours_).substr(0, 41 + FramesOf(Export(&ours_))[0].payload.size());
  auto add = [&](const std::string& frames) {
    MemoryStore copy(int64_t{1} << 20, Logger::Silent());
    ArchiveImport import(copy, {.keys = {ours_}});
    return import.Add(header + frames);
  };
  EXPECT_TRUE(add(SignatureFrame(ours_, 'K', kernel) + ArchiveFrame('K', kernel)).ok());
  const absl::Status two =
      add(SignatureFrame(ours_, 'K', kernel) + SignatureFrame(ours_, 'K', kernel));
  EXPECT_TRUE(absl::IsInvalidArgument(two)) << two;
  EXPECT_TRUE(absl::IsInvalidArgument(add(ArchiveFrame('S', "\xff\xff\xff"))));
  // A plan under the signature of a kernel with the same bytes.
  std::vector<ArchivedFrame> frames = FramesOf(Export(&ours_));
  for (size_t i = 0; i + 1 < frames.size(); ++i) {
    if (frames[i + 1].type != 'P') continue;
    frames[i].payload =
        SignatureToBytes(ours_.Sign(SignedEntryBytes('K', Sha256(frames[i + 1].payload))));
  }
  const ImportOutcome outcome = Import(ArchiveOf(frames), {.keys = {ours_}}).value();
  EXPECT_EQ(outcome.plans, 0);
  EXPECT_EQ(outcome.refused_plans, 2);
}

TEST_F(StoreArchiveTest, ASignedPlanDoesNotVouchForKernelsThatNobodySigned) {
  std::vector<ArchivedFrame> frames = FramesOf(Export(&ours_));
  for (size_t i = 0; i + 1 < frames.size(); ++i) {
    if (frames[i].type == 'S' && frames[i + 1].type == 'K') {
      frames.erase(frames.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  int claims = 0;
  ArchiveTrust trust{.keys = {ours_}};
  trust.remake = [&](const ClaimedPlan&) -> absl::StatusOr<RemadePlan> {
    ++claims;
    return RemadePlan{};
  };
  const ImportOutcome outcome = Import(ArchiveOf(frames), trust).value();
  EXPECT_EQ(claims, 2);
  EXPECT_EQ(outcome.remade, 2);
  EXPECT_TRUE(CopyIsEmpty());
}

TEST_F(StoreArchiveTest, ArchivesWithoutSignaturesAreOfTheVersionThatOlderServersRead) {
  auto version = [](const std::string& archive) {
    uint64_t number = 0;
    std::memcpy(&number, FramesOf(archive)[0].payload.data() + strlen("fusion-store-archive\n"), 8);
    return number;
  };
  EXPECT_EQ(version(Export(nullptr)), 1u);
  EXPECT_EQ(version(Export(&ours_)), kArchiveVersion);
}

TEST_F(StoreArchiveTest, KernelsThatWaitForTheirPlanAreBounded) {
  ArchiveWriter writer(store_, {bundles_[0].plan->key},
                       [this](std::string_view bytes) { return ours_.Sign(bytes); });
  MemoryStore copy(int64_t{1} << 30, Logger::Silent());
  ArchiveImport import(copy, {.keys = {ours_}});
  ASSERT_TRUE(import.Add(writer.Next()).ok());
  constexpr int64_t kClaims = 64 << 10;  // some bytes for each kernel that came
  for (int i = 0; i < 80; ++i) {         // of 1 MiB, and no plan of them comes
    const std::string kernel = EncodeArtifact(SampleKernel(1000 + i, size_t{1} << 20));
    if (i % 2 == 0) {
      ASSERT_TRUE(import.Add(SignatureFrame(ours_, 'K', kernel)).ok());
    }
    ASSERT_TRUE(import.Add(ArchiveFrame('K', kernel)).ok());
    EXPECT_LE(import.held_bytes(), kMaxWaitingKernels + kClaims);
  }
  for (int i = 0; i < 40; ++i) {
    const std::string kernel = EncodeArtifact(SampleKernel(2000 + i, size_t{1} << 20));
    ASSERT_TRUE(import.Add(SignatureFrame(ours_, 'K', kernel) + ArchiveFrame('K', kernel)).ok());
  }
  EXPECT_GT(import.outcome().kernels, 50) << "they were stored on their own";
  EXPECT_LE(import.outcome().kernels, 80) << "but not those that nobody signed";
  ASSERT_TRUE(import.Add(writer.Next()).ok());
  EXPECT_EQ(import.outcome().plans, 1) << "with kernels that came before, and its own";
  EXPECT_LE(import.held_bytes(), kClaims);
}

TEST_F(StoreArchiveTest, FramesAndTenantsThatAreTooLongAreRefused) {
  MemoryStore copy(1 << 20, Logger::Silent());
  {
    ArchiveImport import(copy, {});
    std::string head = ArchiveFrame('K', "");
    const uint64_t length = kMaxArchivePayload + 1;
    std::memcpy(head.data() + 1, &length, 8);
    ASSERT_TRUE(import.Add(ArchiveWriter(store_, {}).Next()).ok());
    absl::Status refused = import.Add(head);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(Message(refused)), HasSubstr("expected at most 128.00 MiB"));
  }
  for (size_t tenant : {size_t{64}, size_t{65}}) {
    ArchiveImport import(copy, {.keys = {ours_}});
    ASSERT_TRUE(import.Add(ArchiveWriter(store_, {}).Next()).ok());
    const std::array<uint64_t, 2> numbers{0, tenant};  // kernels; length of the tenant
    const std::string plan =
        StrCat(std::string_view(reinterpret_cast<const char*>(numbers.data()), 16),
               std::string(tenant, 't'), EncodeStoredPlan(*bundles_[0].plan));
    ASSERT_TRUE(import.Add(SignatureFrame(ours_, 'P', plan) + ArchiveFrame('P', plan)).ok());
    EXPECT_EQ(import.outcome().refused_plans, tenant == 64 ? 0 : 1);
  }
}

TEST_F(StoreArchiveTest, NoDamagedArchiveBringsAnythingWrong) {
  for (const bool is_signed : {false, true}) {
    const std::string sound = Export(is_signed ? &ours_ : nullptr);
    for (size_t i = 0; i < 200; ++i) {
      std::string bytes = sound;
      const size_t at = i * 7919 % bytes.size();
      if (i % 2 == 0) {
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << (i % 8)));
      } else {
        bytes.resize(at);
      }
      absl::Status status = Import(bytes, {.keys = {ours_}}).status();
      EXPECT_FALSE(status.ok()) << "damage at " << at << " was not noticed";
      for (const Bundle& bundle : bundles_) {
        Found<StoredPlan> plan = copy_->GetPlan({bundle.plan->key});
        if (plan) {
          EXPECT_EQ(plan.value->plan_bytes, bundle.plan->plan_bytes);
        }
        for (const auto& kernel : bundle.kernels) {
          Found<KernelArtifact> found = copy_->GetKernel({kernel->key});
          EXPECT_TRUE(found || !plan) << "a plan without its kernels";
          if (found) {
            EXPECT_EQ(found.value->binary, kernel->binary);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace fusion
