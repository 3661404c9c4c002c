// The store of a real fusiond under faults: killed at any write, a full disk, flipped bits.
//
// FUSION_CRASH_ROUNDS (default 10), FUSION_UPKEEP_ROUNDS (default 2), FUSION_FLIP_ROUNDS (default
// 4) and FUSION_FULL_ROUNDS (default 2) say how often; tests/acceptance asks for more.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "core/base/files/file.h"
#include "core/base/sanitizer.h"
#include "core/base/threads/mutex.h"
#include "core/onnx/reference_weights.h"
#include "fusion/v1/fusion_admin.pb.h"
#include "tests/models/models.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using testing::HasSubstr;

int Rounds(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

/// Variables of this process, which the programs it starts inherit, until the end of a scope.
class ScopedEnvironment {
 public:
  explicit ScopedEnvironment(std::map<std::string, std::string> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~ScopedEnvironment() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  const std::map<std::string, std::string> variables_;
};

/// A small graph like no other of another number.
v1::PlanFusionRequest GraphNumber(int n) {
  ModelParams params = FindModel("mlp")->defaults;
  params.rows = 2 + n % 50;
  params.cols = 4 + n / 50 * 4;
  params.depth = 1;
  return RequestFor(
      ReferenceWeights(GenerateModel(*FindModel("mlp"), params).value().model).value());
}

/// What a reply promised: it is stored.
struct Promise {
  std::string plan_key;
  std::map<std::string, std::string> content_by_kernel;
};

bool IsStored(const v1::PlanFusionResponse& response) {
  for (const std::string& warning : response.warnings()) {
    if (warning.starts_with("not stored")) return false;
  }
  for (const v1::KernelStatus& kernel : response.kernels()) {
    if (kernel.state() != v1::KERNEL_STATE_READY) return false;
  }
  return response.kernels_size() > 0;
}

/// Plan and kernels were there.
bool IsHit(const v1::PlanFusionResponse& response) {
  return (response.cache() == v1::CACHE_OUTCOME_HIT_STORE ||
          response.cache() == v1::CACHE_OUTCOME_HIT_MEMORY) &&
         std::all_of(response.kernels().begin(), response.kernels().end(),
                     [](const v1::KernelStatus& kernel) { return kernel.cached(); });
}

Promise PromiseOf(const v1::PlanFusionResponse& response) {
  Promise out{.plan_key = response.plan_key(), .content_by_kernel = {}};
  for (const v1::KernelStatus& kernel : response.kernels()) {
    out.content_by_kernel[kernel.key()] = kernel.content_sha256();
  }
  return out;
}

/// What the library adds to its count when it kills.
constexpr int64_t kKilledThere = int64_t{1} << 40;

class StoreFaultsTest : public ServerTest {
 protected:
  void SetUp() override {
    // The sanitizers' runtimes must come before any other library.
    if (kSanitized) GTEST_SKIP() << "preloading and sanitizers exclude each other";
  }

  std::string store() const { return dir_.path("store"); }
  std::map<std::string, std::string> Shim(std::map<std::string, std::string> more) const {
    more["LD_PRELOAD"] = FUSION_FAULT_SHIM;
    more.try_emplace("FUSION_FAULT_DIR", store() + "/db");
    return more;
  }

  // Calls so far that would change a file of the store, in the last server that was started with
  // FUSION_FAULT_COUNT.
  std::map<std::string, std::string> Counting() const {
    dir_.Write("count", std::string(8, '\0'));
    return {{"FUSION_FAULT_COUNT", dir_.path("count")}};
  }
  int64_t Counted() const {
    int64_t count = 0;
    std::string bytes = ReadFile(dir_.path("count"), 8).value();
    std::memcpy(&count, bytes.data(), sizeof(count));
    return count;
  }

  // The same for a server that dies at one of them.
  std::map<std::string, std::string> KillingAt(int64_t point) const {
    std::map<std::string, std::string> variables = Counting();
    variables["FUSION_FAULT_KILL_AT"] = StrCat(point);
    return variables;
  }

  // Several clients ask for graphs until the server is gone, or `graphs` were asked for.
  void Load(const std::string& address, int graphs) {
    std::atomic<int> left{graphs};
    std::vector<std::thread> clients;
    for (int c = 0; c < 3; ++c) {
      clients.emplace_back([&] {
        FusionCaller caller(address);
        while (left.fetch_sub(1) > 0) {
          const int n = next_.fetch_add(1);
          v1::PlanFusionResponse response;
          grpc::Status status = caller.Plan(GraphNumber(n), &response);
          if (!status.ok()) return;
          MutexLock lock(&mutex_);
          if (IsStored(response)) promises_[n] = PromiseOf(response);
        }
      });
    }
    for (std::thread& client : clients) client.join();
  }

  // Asks on until the server has died at that call, or has had its chance to.
  void LoadUntil(const std::string& address, int64_t point, int graphs) {
    for (int i = 0; i < 20 && Counted() < point; ++i) Load(address, graphs);
  }

  // A client that plans more than the store holds, and pins, drops and compacts, until the server
  // is gone (a call after that would wait for it) or `graphs` were asked for. What it was told is
  // pinned, with all of its kernels, is promised.
  void LoadUpkeep(const std::string& address, int graphs) {
    const FusionCaller caller(address);
    auto admin = [&caller](const std::string& method, const google::protobuf::Message& request) {
      std::string response;
      return caller.CallBytes("/fusion.v1.FusionAdmin/" + method, request.SerializeAsString(),
                              &response);
    };
    for (int i = 0; i < graphs; ++i) {
      const int n = next_.fetch_add(1);
      v1::PlanFusionResponse response;
      if (!caller.Plan(GraphNumber(n), &response).ok()) return;
      if (!IsStored(response)) continue;
      newest_stays_ = true;
      grpc::Status status;
      if (n % 4 == 0 && Promises().size() < 3) {
        v1::SetPinnedResponse pinned;
        status = Pin(caller, {response.plan_key()}, true, &pinned);
        if (!status.ok()) return;
        EXPECT_EQ(pinned.missing_kernels(), 0) << "all of them were made just before";
        MutexLock lock(&mutex_);
        promises_[n] = PromiseOf(response);
      } else if (n % 4 == 1) {
        v1::InvalidateRequest request;
        request.add_plan_keys(response.plan_key());
        newest_stays_ = false;
        status = admin("Invalidate", request);
        if (status.ok()) dropped_.insert(response.plan_key());
      } else if (n % 8 == 2) {
        status = admin("CompactStore", v1::CompactStoreRequest());
      }
      if (!status.ok()) return;
    }
  }
  static grpc::Status Pin(const FusionCaller& caller, const std::vector<std::string>& plans,
                          bool pinned, v1::SetPinnedResponse* now) {
    v1::SetPinnedRequest request;
    for (const std::string& key : plans) request.add_plan_keys(key);
    request.set_pinned(pinned);
    std::string response;
    grpc::Status status = caller.CallBytes("/fusion.v1.FusionAdmin/SetPinned",
                                           request.SerializeAsString(), &response);
    EXPECT_TRUE(now->ParseFromString(response));
    return status;
  }
  // So that the next round has room again: also what was pinned when nobody was told so any more.
  void UnpinAll() {
    std::vector<std::string> plans;
    const v1::ListPlansResponse stored = Plans();
    for (const v1::PlanSummary& plan : stored.plans()) {
      if (plan.pinned()) plans.push_back(plan.plan_key());
    }
    MutexLock lock(&mutex_);
    promises_.clear();
    if (plans.empty()) return;
    v1::SetPinnedResponse now;
    const grpc::Status status = Pin(*admin_, plans, false, &now);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(now.pinned_plans(), 0);
  }
  v1::ListPlansResponse Plans() const {
    v1::ListPlansRequest request;
    request.set_page_size(1000);
    v1::ListPlansResponse plans;
    grpc::ClientContext context;
    EXPECT_TRUE(caller_->stub().ListPlans(&context, request, &plans).ok());
    return plans;
  }

  void LoadAndKill(TestDaemon& daemon, uint64_t after_ms, int graphs) {
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
      daemon.Send(SIGKILL);
    });
    Load(daemon.address(), graphs);
    killer.join();
  }

  // Plans one more graph, which cannot be stored: the answer is as good. Its number.
  int ExpectAnsweredAndNotStored() {
    const int n = next_.fetch_add(1);
    const v1::PlanFusionResponse unstored = caller_->Plan(GraphNumber(n));
    EXPECT_THAT(unstored.warnings(), testing::Contains(HasSubstr("not stored")));
    for (v1::KernelState state : StatesOf(unstored)) EXPECT_EQ(state, v1::KERNEL_STATE_READY);
    nlohmann::json disk = Status()["stores"][1];
    EXPECT_EQ(disk["writable"], false);
    EXPECT_NE(disk["not_writable"], "");
    EXPECT_EQ(Metric("fusion_store_writable{tier=\"disk\"}"), 0);
    return n;
  }

  // What could not be stored then, and nobody plans anew: answers say so until it is there.
  void ExpectStoredLate(int n) {
    v1::PlanFusionResponse stored;
    ASSERT_TRUE(Eventually([&] {
      stored = caller_->Plan(GraphNumber(n));
      return IsStored(stored);
    })) << stored.ShortDebugString().substr(0, 300);
    EXPECT_EQ(stored.cache(), v1::CACHE_OUTCOME_HIT_MEMORY);
    EXPECT_EQ(Metric("fusion_store_unwritten_plans{tier=\"disk\"}"), 0);
    MutexLock lock(&mutex_);
    promises_[n] = PromiseOf(stored);
  }

  // It says by itself that it writes again, and then does.
  void ExpectStoredAgain() {
    ASSERT_TRUE(Eventually([&] { return Status()["stores"][1]["writable"] == true; }))
        << Status()["stores"];
    const int n = next_.fetch_add(1);
    const v1::PlanFusionResponse stored = caller_->Plan(GraphNumber(n));
    ASSERT_TRUE(IsStored(stored)) << stored.ShortDebugString().substr(0, 300);
    MutexLock lock(&mutex_);
    promises_[n] = PromiseOf(stored);
  }

  // Everything promised is there, whole and right.
  void ExpectPromisesKept(const std::string& when) {
    const std::map<int, Promise> promises = Promises();
    for (const auto& [n, promise] : promises) {
      v1::PlanFusionResponse response;
      grpc::Status status = caller_->Plan(GraphNumber(n), &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(response.plan_key(), promise.plan_key);
      EXPECT_TRUE(IsHit(response)) << when << ": plan or kernels of graph " << n << " were lost";
      EXPECT_EQ(PromiseOf(response).content_by_kernel, promise.content_by_kernel) << when;
      std::vector<std::string> keys;
      for (const auto& [key, content] : promise.content_by_kernel) keys.push_back(key);
      std::vector<StreamedKernel> kernels;
      ASSERT_TRUE(caller_->GetKernels(keys, &kernels).ok());
      for (const StreamedKernel& kernel : kernels) {
        EXPECT_EQ(kernel.state, v1::KERNEL_STATE_READY) << when << ": " << kernel.error;
        EXPECT_EQ(std::string(BytesOf(Sha256(kernel.binary))),
                  promise.content_by_kernel.at(kernel.key))
            << when << ": wrong bytes of a kernel";
      }
    }
  }

  // A plan that is listed has all of its kernels, but where some had to go for want of room: the
  // newest also then, for which the others went.
  void ExpectNothingTorn(const std::string& when, bool has_room = true) {
    const v1::ListPlansResponse plans = Plans();
    for (const v1::PlanSummary& plan : plans.plans()) {
      const bool is_newest = newest_stays_ && &plan == &plans.plans(0);
      newest_seen_ += is_newest ? 1 : 0;
      if (has_room || is_newest) {
        EXPECT_EQ(plan.compiled_kernels(), plan.distinct_kernels()) << when << ": torn bundle";
      }
      EXPECT_FALSE(dropped_.contains(plan.plan_key())) << when << ": it was dropped";
    }
    EXPECT_EQ(Metric("fusion_cache_dropped_total{tier=\"disk\"}"), 0) << when;
    EXPECT_EQ(Metric("fusion_store_started_empty"), 0) << when;
  }

  std::map<int, Promise> Promises() {
    MutexLock lock(&mutex_);
    return promises_;
  }

  std::atomic<int> next_{0};
  Mutex mutex_;
  std::map<int, Promise> promises_ ABSL_GUARDED_BY(mutex_);
  // By LoadUpkeep:
  std::set<std::string> dropped_;  // plans
  bool newest_stays_ = false;      // the plan that was stored last was not to be dropped since
  int newest_seen_ = 0;            // such plans
};

TEST_F(StoreFaultsTest, NothingThatWasAnsweredIsLostWhenTheServerIsKilledAtAWrite) {
  constexpr int kGraphs = 6;
  int64_t points = 0;
  {
    ScopedEnvironment shim(Shim(Counting()));
    StartWithStore();
    Load(daemon_->address(), kGraphs);
    ASSERT_EQ(daemon_->Stop().exit_code, 0);
    points = Counted();
  }
  ASSERT_GT(points, 20) << "the library that counts was not loaded";
  ASSERT_EQ(Promises().size(), static_cast<size_t>(kGraphs));
  std::mt19937 random(7);
  const int rounds = Rounds("FUSION_CRASH_ROUNDS", 10);
  // Every other time at a write, one after the other over all of them; else at any moment.
  const int at_writes = (rounds + 1) / 2;
  std::set<int64_t> hit;
  for (int round = 0; round < rounds && !HasFatalFailure(); ++round) {
    const bool at_write = round % 2 == 0;
    const int64_t point = at_write ? 1 + round / 2 * points / at_writes : 0;
    const std::string when = StrCat("round ", round, ", killed at write ", point);
    {
      ScopedEnvironment shim(Shim(KillingAt(point)));
      auto daemon = TestDaemon::Start(FUSIOND, {"--store", store()});
      if (daemon.ok()) {
        at_write ? LoadUntil((*daemon)->address(), point, kGraphs)
                 : LoadAndKill(**daemon, random() % 3000, kGraphs);
        EXPECT_EQ((*daemon)->Wait().signal, SIGKILL) << when;
      } else {  // it was killed while it opened the store
        ASSERT_TRUE(at_write) << daemon.status();
      }
      if (at_write) {
        EXPECT_GE(Counted(), kKilledThere) << when << ": it ended of something else";
        hit.insert(point);
      }
    }
    StartWithStore();
    ASSERT_NE(caller_, nullptr);
    ExpectPromisesKept(when);
    ExpectNothingTorn(when);
    ASSERT_EQ(daemon_->Stop().exit_code, 0);
  }
  EXPECT_EQ(static_cast<int64_t>(hit.size()), std::min<int64_t>(at_writes, points));
  RecordProperty("promises", static_cast<int>(Promises().size()));
  RecordProperty("write_points", static_cast<int>(points));
  RecordProperty("write_points_hit", static_cast<int>(hit.size()));
  std::printf("%d rounds, %d plans promised and kept, killed at %d of %d write points of a load\n",
              rounds, static_cast<int>(Promises().size()), static_cast<int>(hit.size()),
              static_cast<int>(points));
}

TEST_F(StoreFaultsTest, UpkeepTearsNothingAndKeepsItsWordWhenTheServerIsKilledAtAWrite) {
  constexpr int kGraphs = 16;
  // Some five of them.
  const std::vector<std::string> args = {"--store", store(), "--store-limit", "256KiB"};
  int64_t points = 0;
  {
    ScopedEnvironment shim(Shim(Counting()));
    Start(args);
    LoadUpkeep(daemon_->local_address(), kGraphs);
    EXPECT_GT(Metric("fusion_cache_evictions_total{tier=\"disk\"}"), 5);
    EXPECT_GT(dropped_.size(), 2u);
    EXPECT_GT(Promises().size(), 1u);
    ExpectPromisesKept("without a fault");
    UnpinAll();
    ASSERT_EQ(daemon_->Stop().exit_code, 0);
    points = Counted();
  }
  const int64_t rounds = std::min<int64_t>(Rounds("FUSION_UPKEEP_ROUNDS", 2), points);
  std::set<int64_t> hit;
  size_t kept = 0;
  for (int64_t round = 0; round < rounds && !HasFatalFailure(); ++round) {
    const int64_t point = 1 + (2 * round + 1) * points / (2 * rounds);
    const std::string when = StrCat("killed at write ", point);
    {
      ScopedEnvironment shim(Shim(KillingAt(point)));
      auto daemon = TestDaemon::Start(FUSIOND, args);
      if (daemon.ok()) {
        for (int i = 0; i < 20 && Counted() < point; ++i) {
          LoadUpkeep((*daemon)->local_address(), kGraphs);
        }
        if (Counted() < point) (*daemon)->Send(SIGKILL);  // else it would be waited for for ever
        EXPECT_EQ((*daemon)->Wait().signal, SIGKILL) << when;
      }
      EXPECT_GE(Counted(), kKilledThere) << when << ": it was not killed there";
      hit.insert(point);
    }
    Start(args);
    ASSERT_NE(caller_, nullptr);
    ExpectPromisesKept(when);
    ExpectNothingTorn(when, /*has_room=*/false);
    kept += Promises().size();
    UnpinAll();
    ASSERT_EQ(daemon_->Stop().exit_code, 0);
  }
  EXPECT_GT(kept, 0u) << "otherwise nothing was looked at";
  EXPECT_GT(newest_seen_, 0) << "likewise";
  RecordProperty("pins_kept", static_cast<int>(kept));
  RecordProperty("write_points", static_cast<int>(points));
  RecordProperty("write_points_hit", static_cast<int>(hit.size()));
}

TEST_F(StoreFaultsTest, AFullDiskCostsNoAnswerAndPassesByItself) {
  const std::string full = dir_.path("full");
  {
    ScopedEnvironment shim(Shim({{"FUSION_FAULT_FULL", full}}));
    Start({"--store", store(), "--memory-limit", "1"});  // kernels are read from the disk
    const int rounds = Rounds("FUSION_FULL_ROUNDS", 2);
    std::mt19937 random(11);
    for (int round = 0; round < rounds && !HasFatalFailure(); ++round) {
      Load(daemon_->address(), 2);
      // The disk fills up while graphs are planned and stored.
      std::thread filler([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 500));
        dir_.Write("full", "");
      });
      Load(daemon_->address(), 2);
      filler.join();
      ExpectAnsweredAndNotStored();
      ExpectPromisesKept("full disk");
      std::filesystem::remove(full);
      ExpectStoredAgain();
    }
    ASSERT_EQ(daemon_->Stop().exit_code, 0);
  }
  StartWithStore();
  ExpectPromisesKept("after a restart");
  ExpectNothingTorn("after a restart");
}

TEST_F(StoreFaultsTest, AStartOnAFullDiskServesWhatIsThereAndStoresAgainByItself) {
  const std::string full = dir_.Write("full", "");
  // Once with nothing in the store, and once with what came of that.
  for (const char* what : {"an empty store", "a store"}) {
    {
      ScopedEnvironment shim(Shim({{"FUSION_FAULT_FULL", full}, {"FUSION_FAULT_DIR", store()}}));
      dir_.Write("full", "");
      StartWithStore();
      ASSERT_NE(caller_, nullptr) << what;
      EXPECT_THAT(daemon_->output(), HasSubstr("store_not_writable")) << what;
      ExpectPromisesKept(what);
      const int n = ExpectAnsweredAndNotStored();
      // In other bytes it is the same plan.
      v1::PlanFusionRequest other = GraphNumber(n);
      other.set_explain_miss(true);
      for (const v1::PlanFusionRequest& request : {GraphNumber(n), other}) {
        const v1::PlanFusionResponse again = caller_->Plan(request);
        EXPECT_EQ(again.cache(), v1::CACHE_OUTCOME_HIT_MEMORY);
        EXPECT_FALSE(IsStored(again)) << "it says so each time";
      }
      EXPECT_EQ(Metric("fusion_store_unwritten_plans{tier=\"disk\"}"), 1);
      std::filesystem::remove(full);
      ExpectStoredAgain();
      ExpectStoredLate(n);
      ASSERT_EQ(daemon_->Stop().exit_code, 0);
    }
    StartWithStore();
    ExpectPromisesKept(StrCat(what, ", after a restart"));
    ExpectNothingTorn(what);
    ASSERT_EQ(daemon_->Stop().exit_code, 0);
  }
  EXPECT_EQ(Promises().size(), 4u);
}

TEST_F(StoreFaultsTest, FlippedBitsGiveRightKernelsOrNewOnes) {
  StartWithStore();
  Load(daemon_->address(), 4);
  ASSERT_EQ(daemon_->Stop().exit_code, 0);
  StartWithStore();  // moves what is in the log into files
  ASSERT_EQ(daemon_->Stop().exit_code, 0);
  const std::map<int, Promise> promises = Promises();
  ASSERT_EQ(promises.size(), 4u);
  std::filesystem::copy(store(), dir_.path("sound"), std::filesystem::copy_options::recursive);
  std::mt19937_64 random(13);
  int met = 0;
  for (int round = 0; round < Rounds("FUSION_FLIP_ROUNDS", 4); ++round) {
    std::filesystem::remove_all(store());
    std::filesystem::copy(dir_.path("sound"), store(), std::filesystem::copy_options::recursive);
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(store() + "/db")) {
      if (file.is_regular_file() && file.file_size() > 0) files.push_back(file.path());
    }
    const std::filesystem::path& file = files[random() % files.size()];
    const auto at = static_cast<std::streamoff>(random() % std::filesystem::file_size(file));
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const int byte = stream.get();
    stream.seekp(at).put(static_cast<char>(byte ^ (1 << (random() % 8))));
    stream.close();
    StartWithStore();
    ASSERT_NE(caller_, nullptr) << file;
    const std::string where = StrCat(file.filename().string(), " at ", at);
    bool missed = false;
    for (const auto& [n, promise] : promises) {
      v1::PlanFusionResponse response;
      ASSERT_TRUE(caller_->Plan(GraphNumber(n), &response).ok()) << where;
      EXPECT_EQ(response.plan_key(), promise.plan_key);
      const bool hit = IsHit(response);
      missed |= !hit;
      std::vector<StreamedKernel> kernels;
      ASSERT_TRUE(caller_->GetKernels(KeysOf(response), &kernels).ok());
      for (const StreamedKernel& kernel : kernels) {
        ASSERT_EQ(kernel.state, v1::KERNEL_STATE_READY) << where;
        const std::string content(BytesOf(Sha256(kernel.binary)));
        EXPECT_EQ(content, kernel.content_sha256) << where;
        if (hit) {
          EXPECT_EQ(content, promise.content_by_kernel.at(kernel.key)) << where;
        }
      }
    }
    const bool counted = Metric("fusion_cache_dropped_total{tier=\"disk\"}") > 0 ||
                         Metric("fusion_store_started_empty") == 1;
    EXPECT_TRUE(counted || !missed) << where << ": a miss, and nothing was counted";
    met += counted;
    daemon_->Stop();
  }
  RecordProperty("flips_met", met);
}

TEST_F(StoreFaultsTest, AStoreWithoutItsManifestIsPutAsideLoudly) {
  StartWithStore();
  Load(daemon_->address(), 1);
  ASSERT_EQ(daemon_->Stop().exit_code, 0);
  WriteFile(store() + "/db/CURRENT", "MANIFEST-999999\n").IgnoreError();
  StartWithStore();
  ASSERT_NE(caller_, nullptr);
  EXPECT_EQ(Metric("fusion_store_started_empty"), 1);
  nlohmann::json disk = Status()["disk"];
  EXPECT_EQ(disk["started_empty"], true);
  EXPECT_TRUE(std::filesystem::exists(disk["set_aside"].get<std::string>())) << disk;
  EXPECT_GT(disk["set_aside_bytes"], 0);
  EXPECT_EQ(Metric("fusion_store_set_aside_bytes"), disk["set_aside_bytes"]);
  EXPECT_THAT(daemon_->output(), HasSubstr("store_set_aside"));
  v1::PlanFusionResponse again = caller_->Plan(GraphNumber(0));
  EXPECT_TRUE(IsStored(again));
}

}  // namespace
}  // namespace fusion
