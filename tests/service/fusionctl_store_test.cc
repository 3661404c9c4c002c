// fusionctl store against the real fusiond, and the calls of FusionAdmin behind it.
#include <filesystem>
#include <fstream>

#include "client/admin_client.h"
#include "core/base/files/file.h"
#include "core/wire/kernel.h"
#include "tests/service/fusion_caller.h"
#include "tests/service/fusionctl_fixture.h"
#include "tests/support/archive_frames.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;

class FusionctlStoreTest : public FusionctlTest {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<TestDaemon>> own =
        TestDaemon::Start(FUSIOND, {"--store", dir_.path("store")});
    ASSERT_TRUE(own.ok()) << own.status();
    own_ = *std::move(own);
  }

  ProgramResult Store(std::vector<std::string> words) {
    words.insert(words.begin(), {FUSIONCTL, "store"});
    words.insert(words.end(), {"--server", own_->local_address()});
    return RunProgram(words);
  }
  Json StoreJson(std::vector<std::string> words, int code = 0) {
    words.push_back("--json");
    ProgramResult result = Store(std::move(words));
    EXPECT_EQ(result.code, code) << result.err;
    return Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  // Plans a model of so many rows into the store; its key.
  std::string PlanOf(int64_t rows) {
    ModelParams params = SmallMlp();
    params.rows = rows;
    params.depth = 1;
    ProgramResult result = RunProgram(
        {FUSIONCTL, "plan", Write("mlp", params), "--json", "--server", own_->local_address()});
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out)["plan_key"];
  }

  std::unique_ptr<TestDaemon> own_;
};

TEST_F(FusionctlStoreTest, StatsVerifyAndCompactSayWhatIsThere) {
  PlanOf(3);
  Json stats = StoreJson({"stats"});
  ASSERT_EQ(stats["tiers"].size(), 2u);
  EXPECT_EQ(stats["tiers"][1]["name"], "disk");
  EXPECT_EQ(stats["tiers"][1]["plans"], 1);
  EXPECT_EQ(stats["tiers"][1]["writable"], true);
  EXPECT_EQ(stats["schema_version"], 2);
  EXPECT_EQ(stats["started_empty"], false);
  EXPECT_THAT(stats["directory"].get<std::string>(), HasSubstr("store/db"));
  EXPECT_GT(stats["free_bytes"], 0);
  int64_t tenants = 0;
  for (const auto& [tenant, bytes] : stats["tenant_bytes"].items()) tenants += bytes.get<int64_t>();
  EXPECT_EQ(tenants, stats["tiers"][1]["bytes"]);
  EXPECT_THAT(Store({"stats"}).out, HasSubstr("schema version 2"));

  Json check = StoreJson({"verify"});
  EXPECT_EQ(check["plans"], 1);
  EXPECT_EQ(check["kernels"], stats["tiers"][1]["kernels"]);
  EXPECT_EQ(check["damaged"], 0);
  Json sizes = StoreJson({"compact"});
  EXPECT_GT(sizes["disk_bytes_after"], 0);
}

TEST_F(FusionctlStoreTest, StatsSayWhatAStoreTakesThatWasPutAsideBefore) {
  EXPECT_EQ(StoreJson({"stats"})["set_aside_bytes"], 0);
  EXPECT_THAT(Store({"stats"}).out, Not(HasSubstr("put aside")));
  std::filesystem::create_directory(dir_.path("store/db.corrupt-1700000000"));
  dir_.Write("store/db.corrupt-1700000000/000001.sst", std::string(2 << 20, 'x'));
  EXPECT_EQ(StoreJson({"stats"})["set_aside_bytes"], 2 << 20);
  EXPECT_THAT(Store({"stats"}).out, HasSubstr("put aside:  2.00 MiB beside "));
}

TEST_F(FusionctlStoreTest, DamageIsFoundAndExits1) {
  PlanOf(3);
  StoreJson({"compact"});  // into files
  for (const auto& file : std::filesystem::directory_iterator(dir_.path("store/db"))) {
    if (file.path().extension() != ".blob") continue;
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file)) / 2).write("?!", 2);
  }
  Json check = StoreJson({"verify"}, 1);
  EXPECT_GE(check["damaged"], 2);
  EXPECT_EQ(check["damage"].back()["kind"], "file");
  EXPECT_GE(check["missing_kernels"], 1);
}

TEST_F(FusionctlStoreTest, PinsAreNamedByTheBeginningOfAKey) {
  const std::string key = PlanOf(3);
  EXPECT_EQ(StoreJson({"pin", key.substr(0, 12)})["changed"], 1);
  EXPECT_EQ(StoreJson({"pin", key})["changed"], 0);
  EXPECT_EQ(StoreJson({"stats"})["tiers"][1]["pinned_plans"], 1);
  ProgramResult list = RunProgram({FUSIONCTL, "list", "--json", "--server", own_->local_address()});
  EXPECT_EQ(Json::parse(list.out)["plans"][0]["pinned"], true);
  EXPECT_EQ(own_->Stop().exit_code, 0);
  // The directory itself, by a fusiond of its own.
  ProgramResult unpinned =
      BareCtl({"store", "unpin", key.substr(0, 8), "--store", dir_.path("store"), "--json"});
  EXPECT_EQ(unpinned.code, 0) << unpinned.err;
  EXPECT_EQ(Json::parse(unpinned.out)["changed"], 1);
}

// Whoever serves a store may allow it more than a default here.
TEST_F(FusionctlStoreTest, AFusiondOfItsOwnPutsNothingOutUnlessItIsTold) {
  for (int64_t rows : {3, 4, 5}) PlanOf(rows);
  EXPECT_EQ(own_->Stop().exit_code, 0);
  ModelParams params = SmallMlp();
  params.rows = 6;
  params.depth = 1;
  const std::string model = Write("mlp", params);
  auto plans_after = [&](std::vector<std::string> limit) {
    limit.insert(limit.end(), {"--store", dir_.path("store"), "--json"});
    std::vector<std::string> plan = {"plan", model};
    plan.insert(plan.end(), limit.begin(), limit.end());
    EXPECT_EQ(BareCtl(plan).code, 0);
    const Json tier = Json::parse(
        BareCtl({"store", "stats", "--store", dir_.path("store"), "--json"}).out)["tiers"][1];
    EXPECT_EQ(tier["limit_bytes"], INT64_MAX);
    return tier["plans"].get<int>();
  };
  EXPECT_EQ(plans_after({}), 4);
  params.rows = 7;
  Write("mlp", params);
  EXPECT_LT(plans_after({"--store-limit", "64KiB"}), 5) << "where it is asked for others go";
  ProgramResult alone = BareCtl({"plan", model, "--store-limit", "1GiB"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("requires --store"));
}

TEST_F(FusionctlStoreTest, PinSaysWhichKernelsAreNotThere) {
  const std::string key = PlanOf(3);
  EXPECT_EQ(StoreJson({"pin", key})["missing_kernels"], 0);
  const std::unique_ptr<Client> client = Client::Connect(own_->local_address()).value();
  const std::vector<PlanSummary> plans = client->ListPlans(1).value();
  const StoredPlanTexts stored = client->GetStoredPlan(plans[0].plan_key).value();
  ASSERT_FALSE(stored.plan.kernels.empty());
  ASSERT_TRUE(AdminClient(*client).Invalidate({}, {stored.plan.kernels[0].key}, "a test").ok());
  const Json pinned = StoreJson({"pin", key});
  EXPECT_EQ(pinned["missing_kernels"], 1);
  EXPECT_EQ(pinned["not_written"], "");
  EXPECT_THAT(Store({"pin", key}).out,
              HasSubstr("1 of their kernels are not stored; plan the model again"));
  EXPECT_EQ(PlanOf(3), key);
  EXPECT_EQ(StoreJson({"pin", key})["missing_kernels"], 0) << "made again, and kept";
}

TEST_F(FusionctlStoreTest, WhatIsInvalidatedIsMadeAgain) {
  const std::string key = PlanOf(3);
  Json gone = StoreJson({"invalidate", key.substr(0, 8), "--reason", "a wrong\nresult"});
  EXPECT_EQ(gone["plans"], 1);
  EXPECT_EQ(gone["kernels"], 0);
  EXPECT_TRUE(own_->WaitForOutput("\"method\":\"Invalidate\""));
  EXPECT_THAT(own_->output(), HasSubstr("\"reason\":\"a wrong\\nresult\""));
  EXPECT_EQ(PlanOf(3), key);
  EXPECT_EQ(StoreJson({"stats"})["tiers"][1]["plans"], 1);
  Json all = StoreJson({"invalidate", "--all"});
  EXPECT_EQ(all["plans"], 1);
  EXPECT_GE(all["kernels"], 1);
  Json stats = StoreJson({"stats"});
  for (const Json& tier : stats["tiers"]) {
    EXPECT_EQ(tier["plans"], 0);
    EXPECT_EQ(tier["kernels"], 0);
  }
}

TEST_F(FusionctlStoreTest, AnArchiveGoesFromOneStoreToAnother) {
  const std::string key = PlanOf(3);
  const std::string other = PlanOf(5);
  const std::string file = dir_.path("plans.fsa");
  EXPECT_GT(StoreJson({"export", "--out", file})["bytes"], 1000);
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  auto import = [&](const std::string& from) {
    return BareCtl({"store", "import", "--from", from, "--store", dir_.path("copy"), "--json"});
  };
  ProgramResult taken = import(file);
  ASSERT_EQ(taken.code, 0) << taken.err;
  EXPECT_EQ(Json::parse(taken.out)["plans"], 2);
  EXPECT_EQ(Json::parse(import(file).out)["known"], 2);
  ProgramResult plan = BareCtl({"plan",
                                Write("mlp",
                                      [] {
                                        ModelParams params = SmallMlp();
                                        params.rows = 5;
                                        params.depth = 1;
                                        return params;
                                      }()),
                                "--json", "--store", dir_.path("copy")});
  EXPECT_EQ(Json::parse(plan.out)["plan_key"], other);
  EXPECT_EQ(Json::parse(plan.out)["cache"], "store") << "a hit in the other store";

  std::string bytes = ReadFile(file, 64 << 20).value();
  dir_.Write("cut.fsa", bytes.substr(0, bytes.size() / 2));
  ProgramResult cut = import(dir_.path("cut.fsa"));
  EXPECT_EQ(cut.code, 3);
  EXPECT_THAT(cut.err, HasSubstr("cut off"));
  dir_.Write("no.fsa", "what is this? it is long enough to be a frame, but it is none");
  EXPECT_THAT(import(dir_.path("no.fsa")).err, HasSubstr("no archive of a store"));
  EXPECT_EQ(StoreJson({"export", std::string(64, 'a'), "--out", file}, 3)["error"]["code"],
            "NOT_FOUND");
}

// A server that has other kernels under the same keys, say with another linker, and is trusted.
TEST_F(FusionctlStoreTest, AnswersThatAreGivenAgainNameWhatIsThereNow) {
  const SigningKey theirs = SigningKey::Parse("theirs", std::string(64, 'a')).value();
  own_ = TestDaemon::Start(FUSIOND, {"--store", dir_.path("other"), "--import-key",
                                     dir_.Write("theirs.key", std::string(64, 'a'))})
             .value();
  const FusionCaller caller(own_->address());
  const v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto());
  // What a client does: it takes kernels only if they are what the answer said.
  auto fetch = [&] {
    const v1::PlanFusionResponse response = caller.Plan(request);
    std::vector<std::string> keys, said, got;
    for (const v1::KernelStatus& kernel : response.kernels()) {
      keys.push_back(kernel.key());
      said.push_back(kernel.content_sha256());
    }
    std::vector<StreamedKernel> kernels;
    EXPECT_TRUE(caller.GetKernels(keys, &kernels).ok());
    for (const StreamedKernel& kernel : kernels) got.push_back(kernel.content_sha256);
    EXPECT_EQ(got, said);
    return said;
  };
  const std::vector<std::string> before = fetch();
  EXPECT_EQ(fetch(), before) << "given again";
  const std::string file = dir_.path("plans.fsa");
  StoreJson({"export", "--out", file});
  std::vector<ArchivedFrame> frames;
  for (ArchivedFrame& frame : FramesOf(ReadFile(file, 64 << 20).value())) {
    if (frame.type == 'K') {
      KernelArtifact kernel = DecodeArtifact(frame.payload).value();
      kernel.binary += "built otherwise";
      kernel.content = Sha256(kernel.binary);
      frame.payload = EncodeArtifact(kernel);
    }
    if (frame.type == 'K' || frame.type == 'P') {
      frames.push_back(FramesOf(SignatureFrame(theirs, frame.type, frame.payload))[0]);
    }
    frames.push_back(std::move(frame));
  }
  dir_.Write("plans.fsa", ArchiveOf(frames));
  StoreJson({"invalidate", "--all"});
  EXPECT_EQ(StoreJson({"import", "--from", file})["plans"], 1);
  const std::vector<std::string> after = fetch();
  EXPECT_NE(after, before);
  EXPECT_EQ(fetch(), after);
  // And back again, without a word to anybody.
  StoreJson({"invalidate", "--all"});
  EXPECT_EQ(fetch(), before) << "made again";
}

TEST_F(FusionctlStoreTest, EveryCallLeavesOneLineInTheLog) {
  StoreJson({"stats"});
  StoreJson({"pin", std::string(64, 'a')}, 3);
  EXPECT_TRUE(own_->WaitForOutput("\"method\":\"SetPinned\""));
  std::string log = own_->output();
  size_t lines = 0;
  for (size_t at = log.find("\"event\":\"admin\""); at != std::string::npos;
       at = log.find("\"event\":\"admin\"", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 2u);
  EXPECT_THAT(log, HasSubstr("\"code\":\"NOT_FOUND\""));
}

TEST_F(FusionctlStoreTest, WrongUseIsSaidInOneLine) {
  for (const auto& [words, complaint] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"pin"}, "which plans?"},
           {{"stats", "aaaaaaaa"}, "plans are for pin"},
           {{"invalidate"}, "invalidate: what?"},
           {{"invalidate", "--all", "aaaaaaaa"}, "--all excludes keys"},
           {{"export"}, "expected --out FILE"},
           {{"import"}, "expected --from FILE"},
           {{"stats", "--all"}, "are for invalidate"},
           {{"polish"}, "expected one of"}}) {
    ProgramResult result = Store(words);
    EXPECT_EQ(result.code, 2);
    ExpectOneErrorLine(result);
    EXPECT_THAT(result.err, HasSubstr(complaint));
  }
  ProgramResult nowhere = BareCtl({"store", "stats"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--server ADDRESS or --store DIR"));
}

TEST_F(FusionctlStoreTest, AServerWithoutADiskSaysSo) {
  ProgramResult result =
      RunProgram({FUSIONCTL, "store", "verify", "--server", daemon_->local_address()});
  EXPECT_EQ(result.code, 4) << "the server lacks it, the request is right";
  EXPECT_THAT(result.err, HasSubstr("keeps nothing on disk"));
  auto client = Client::Connect(daemon_->local_address()).value();
  AdminClient admin(*client);
  absl::StatusOr<v1::GetStoreStatsResponse> stats = admin.GetStoreStats();
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->tiers_size(), 1);
  EXPECT_EQ(stats->directory(), "");
  EXPECT_TRUE(absl::IsFailedPrecondition(admin.CompactStore().status()));
  EXPECT_TRUE(absl::IsInvalidArgument(admin.SetPinned({}, true).status()));
}

}  // namespace
}  // namespace fusion
