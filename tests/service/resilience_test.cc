// Models that load and run while the real fusiond is killed, stopped, silent, and back.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "client/fallback/resilient_model.h"
#include "core/base/files/file.h"
#include "core/base/files/unique_fd.h"
#include "core/base/hash.h"
#include "core/bundle/tolerance.h"
#include "core/tensor/compare.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.pb.h"
#include "tests/models/models.h"
#include "tests/support/daemon.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

GeneratedModel Mlp(int64_t rows) {
  ModelParams params = FindModel("mlp")->defaults;
  params.rows = rows;
  params.cols = 32;
  params.depth = 3;
  return GenerateModel(*FindModel("mlp"), params).value();
}

bool Agree(const std::vector<HostTensor>& got, const std::vector<HostTensor>& wanted) {
  bool ok = got.size() == wanted.size();
  for (size_t i = 0; ok && i < got.size(); ++i) {
    ok = Compare(got[i], wanted[i], ToleranceOf(Numerics::kFp32Accumulate, wanted[i].dtype())).ok();
  }
  return ok;
}

// What nobody's plan computed.
std::vector<HostTensor> Evaluated(const GeneratedModel& model,
                                  const std::vector<HostTensor>& inputs) {
  std::unique_ptr<ResilientModel> judge = ResilientModel::Load(nullptr, model.model, ".").value();
  FUSION_CHECK(judge->mode() == RunMode::kOpByOp, "nobody can give a plan");
  return judge->Run(inputs).value();
}

// Accepts connections and says nothing, or trickles: what a gRPC server begins with, a byte now and
// then, and nothing after it. Until it listens, at once or when told to, it refuses them.
class SilentServer {
 public:
  explicit SilentServer(bool trickles, bool at_once = true) : trickles_(trickles) {
    fd_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(at);
    const bool bound = bind(fd_.get(), reinterpret_cast<sockaddr*>(&at), length) == 0 &&
                       getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&at), &length) == 0;
    FUSION_CHECK(bound, "a free port");
    address_ = StrCat("127.0.0.1:", ntohs(at.sin_port));
    if (at_once) Listen();
  }
  ~SilentServer() {
    stop_ = true;
    shutdown(fd_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  void Listen() {
    FUSION_CHECK(listen(fd_.get(), 64) == 0, "a socket of its own");
    thread_ = std::thread([this] { Work(); });
  }
  const std::string& address() const { return address_; }
  // Connections that have heard all that it says.
  int waiting() const { return waiting_; }

 private:
  void Work() {
    // Empty settings.
    constexpr std::string_view kFrame("\0\0\0\4\0\0\0\0\0", 9);
    std::vector<std::pair<UniqueFd, std::string_view>> accepted;  // with what each is yet to hear
    timeval brief{0, 20'000};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof(brief));
    while (!stop_) {
      UniqueFd peer(accept(fd_.get(), nullptr, nullptr));
      if (peer.valid()) {
        accepted.emplace_back(std::move(peer), trickles_ ? kFrame : std::string_view());
        waiting_ += trickles_ ? 0 : 1;
      }
      for (auto& [to, rest] : accepted) {
        if (rest.empty()) continue;
        send(to.get(), rest.data(), 1, MSG_NOSIGNAL);
        rest.remove_prefix(1);
        waiting_ += rest.empty() ? 1 : 0;
      }
    }
  }
  const bool trickles_;
  UniqueFd fd_;
  std::string address_;
  std::atomic<bool> stop_{false};
  std::atomic<int> waiting_{0};
  std::thread thread_;
};

class ResilienceTest : public testing::Test {
 protected:
  void StartDaemon(std::vector<std::string> args = {}) {
    absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND, args);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }
  std::shared_ptr<BundleCache> Cache() { return BundleCache::Open(dir_.path("cache")).value(); }
  // Pauses are short, so that tests are.
  static ResilientOptions Quick(std::shared_ptr<BundleCache> cache = nullptr) {
    ResilientOptions options;
    options.retry.first_pause = milliseconds(10);
    options.breaker.pause = milliseconds(50);
    options.breaker.most_pause = milliseconds(200);
    options.load_deadline = seconds(60);
    options.cache = std::move(cache);
    return options;
  }
  static std::shared_ptr<ResilientClient> ClientOf(std::vector<std::string> addresses,
                                                   const ResilientOptions& options) {
    return ResilientClient::Create(std::move(addresses), options).value();
  }
  std::unique_ptr<ResilientModel> Load(const std::shared_ptr<ResilientClient>& client,
                                       const ResilientModelOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<ResilientModel>> model =
        ResilientModel::Load(client, model_.model, ".", options);
    EXPECT_TRUE(model.ok()) << model.status();
    EXPECT_TRUE(client->AwaitKept(seconds(30)));
    return model.ok() ? *std::move(model) : nullptr;
  }
  std::vector<HostTensor> Inputs() const { return GenerateInputs(model_.inputs, 3); }
  void ExpectRight(const ResilientModel& model) {
    absl::StatusOr<std::vector<HostTensor>> got = model.Run(Inputs());
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(Agree(*got, Evaluated(model_, Inputs())));
    std::map<std::string, HostTensor> named = {{model_.inputs[0].name, Inputs()[0]}};
    absl::StatusOr<std::vector<HostTensor>> by_name = model.Run(named);
    ASSERT_TRUE(by_name.ok()) << by_name.status();
    EXPECT_EQ(*by_name, *got);
  }
  std::vector<std::string> CacheFiles(std::string_view prefix) {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path("cache"))) {
      if (entry.path().filename().string().starts_with(prefix)) out.push_back(entry.path());
    }
    return out;
  }

  ScratchDir dir_;
  GeneratedModel model_ = Mlp(16);
  std::unique_ptr<TestDaemon> daemon_;
};

TEST_F(ResilienceTest, AServiceThatIsThereGivesThePlan) {
  StartDaemon();
  auto client = ClientOf({daemon_->address()}, Quick(Cache()));
  std::unique_ptr<ResilientModel> model = Load(client);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->mode(), RunMode::kFusedFromService);
  EXPECT_EQ(model->reason(), "");
  ExpectRight(*model);
  const ClientStats stats = client->stats();
  EXPECT_EQ(stats.from_service, 1);
  EXPECT_EQ(stats.fallbacks, 0);
  EXPECT_EQ(stats.fetched_kernels, static_cast<int64_t>(model->fused()->plan().kernels.size()));
  // Kernels that are here are not fetched again.
  auto second = ClientOf({daemon_->address()}, Quick(Cache()));
  ASSERT_NE(Load(second), nullptr);
  EXPECT_EQ(second->stats().fetched_kernels, 0);
  EXPECT_EQ(second->stats().cache.kernel_hits, stats.fetched_kernels);
  EXPECT_EQ(second->stats().cache.stored, 0);
}

TEST_F(ResilienceTest, EachLoadHasItsTrace) {
  StartDaemon({"--log-usual", "-1"});
  auto client = ClientOf({daemon_->address()}, Quick());
  // The ids of the calls that a load makes.
  auto traces = [&](const ResilientModelOptions& options) {
    const size_t before = daemon_->output().size();
    Load(client, options);
    EXPECT_TRUE(daemon_->WaitForOutput("\"method\":\"GetKernels\""));
    const std::string log = daemon_->output().substr(before);
    std::set<std::string> ids;
    for (size_t at = 0; (at = log.find("\"event\":\"rpc\"", at)) != std::string::npos; ++at) {
      constexpr std::string_view kId = "\"trace_id\":\"";
      ids.insert(log.substr(log.find(kId, at) + kId.size(), 32));
    }
    return ids;
  };
  const std::string id = "4bf92f3577b34da6a3ce929d0e0e4736";
  ResilientModelOptions options;
  options.model.reports.enabled = false;
  const std::set<std::string> first = traces(options);
  const std::set<std::string> second = traces(options);
  EXPECT_EQ(first.size(), 1u) << "one for its plan and its kernels";
  EXPECT_EQ(second.size(), 1u);
  EXPECT_NE(first, second);
  options.model.traceparent = StrCat("00-", id, "-00f067aa0ba902b7-01");
  EXPECT_EQ(traces(options), std::set<std::string>{id});
  options.model.traceparent = "no traceparent at all";
  EXPECT_EQ(traces(options).size(), 1u) << "a new one, for both calls";
}

TEST_F(ResilienceTest, AKilledServiceLeavesWhatIsCached) {
  StartDaemon();
  ASSERT_NE(Load(ClientOf({daemon_->address()}, Quick(Cache()))), nullptr);
  daemon_->Send(SIGKILL);
  daemon_->Wait();
  auto client = ClientOf({daemon_->address()}, Quick(Cache()));
  std::unique_ptr<ResilientModel> model = Load(client);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->mode(), RunMode::kFusedFromCache);
  EXPECT_THAT(model->reason(), HasSubstr(daemon_->address()));
  ExpectRight(*model);
  EXPECT_EQ(client->stats().from_cache, 1);
  EXPECT_EQ(client->stats().cache.hits, 1);
  EXPECT_EQ(client->stats().fallbacks, 0);
}

TEST_F(ResilienceTest, APreferredCacheAsksNobody) {
  StartDaemon();
  ASSERT_NE(Load(ClientOf({daemon_->address()}, Quick(Cache()))), nullptr);
  ResilientOptions options = Quick(Cache());
  options.policy = CachePolicy::kPreferCache;
  auto client = ClientOf({daemon_->address()}, options);
  std::unique_ptr<ResilientModel> model = Load(client, {.refresh_cache = false});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->mode(), RunMode::kFusedFromCache);
  EXPECT_EQ(client->stats().asked, 0);
  ExpectRight(*model);
}

// Of another build, say: whole, and nothing that can be loaded here.
TEST_F(ResilienceTest, APreferredPlanThatCannotBeLoadedIsAskedFor) {
  StartDaemon();
  ASSERT_NE(Load(ClientOf({daemon_->address()}, Quick(Cache()))), nullptr);
  const std::string junk = "not a shared object";
  const std::string sha256(BytesOf(Sha256(junk)));
  bool changed = false;
  for (const auto& file : std::filesystem::directory_iterator(dir_.path("cache"))) {
    if (!file.path().filename().string().starts_with("plan-")) continue;
    const std::string bytes = ReadFile(file.path(), 1 << 24).value();
    // Magic and digest, then the answer.
    v1::PlanFusionResponse answer;
    size_t head = 32;
    while (head < 64 && Sha256(std::string_view(bytes).substr(head)) !=
                            DigestFromWire(bytes.substr(head - 32, 32)).value()) {
      ++head;
    }
    ASSERT_TRUE(answer.ParseFromString(bytes.substr(head)));
    for (v1::KernelStatus& kernel : *answer.mutable_kernels()) {
      kernel.set_content_sha256(sha256);
      WriteFile(dir_.path(StrCat("cache/kernel-", DigestFromWire(kernel.key()).value().ToHex(), "-",
                                 Sha256(junk).ToHex())),
                junk)
          .IgnoreError();
    }
    const std::string out = answer.SerializeAsString();
    ASSERT_TRUE(
        WriteFile(file.path(), StrCat(bytes.substr(0, head - 32), BytesOf(Sha256(out)), out)).ok());
    changed = true;
  }
  ASSERT_TRUE(changed);
  for (const auto& file : std::filesystem::directory_iterator(dir_.path("cache"))) {
    std::filesystem::permissions(
        file.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  ResilientOptions options = Quick(Cache());
  options.policy = CachePolicy::kPreferCache;
  auto client = ClientOf({daemon_->address()}, options);
  std::unique_ptr<ResilientModel> model = Load(client, {.upgrade = false});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(client->stats().from_cache, 1) << "it was found";
  EXPECT_EQ(model->mode(), RunMode::kFusedFromService) << model->reason();
  ExpectRight(*model);
}

TEST_F(ResilienceTest, WithoutServiceAndCacheItRunsOpByOp) {
  auto client = ClientOf({"unix:/nobody/is/here"}, Quick());
  std::unique_ptr<ResilientModel> model = Load(client, {.upgrade = false});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->mode(), RunMode::kOpByOp);
  EXPECT_THAT(model->reason(), HasSubstr("unix:/nobody/is/here"));
  EXPECT_EQ(model->fused(), nullptr);
  ExpectRight(*model);
  EXPECT_EQ(client->stats().fallbacks, 1);
}

TEST_F(ResilienceTest, OpByOpEqualsFused) {
  StartDaemon();
  auto client = ClientOf({daemon_->address()}, Quick());
  for (const char* name : {"softmax", "bert_layer", "gpt2_layer"}) {
    const ModelSpec* spec = FindModel(name);
    ASSERT_NE(spec, nullptr) << name;
    ModelParams params = spec->defaults;
    params.rows = 8;
    params.seq = 16;
    params.hidden = 48;
    params.heads = params.kv_heads = 4;
    params.ff = 64;
    model_ = GenerateModel(*spec, params).value();
    std::unique_ptr<ResilientModel> model = Load(client);
    ASSERT_NE(model, nullptr) << name;
    EXPECT_EQ(model->mode(), RunMode::kFusedFromService);
    absl::StatusOr<std::vector<HostTensor>> got = model->Run(Inputs());
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(Agree(*got, Evaluated(model_, Inputs()))) << name;
  }
}

TEST_F(ResilienceTest, DimsThatStayOpenAreThoseOfEachRun) {
  const ModelSpec* spec = FindModel("bert_tiny");
  ModelParams params = spec->defaults;
  params.seq = 16;
  params.hidden = 48;
  params.heads = params.kv_heads = 4;
  params.ff = 64;
  params.dynamic = true;
  const onnx::ModelProto open = GenerateModel(*spec, params).value().model;
  ResilientModelOptions options;
  options.model.plan.dim_ranges = {{"batch", {.least = 1, .most = 4}},
                                   {"seq", {.least = 1, .most = 64}}};
  absl::StatusOr<std::unique_ptr<ResilientModel>> model =
      ResilientModel::Load(nullptr, open, ".", options);
  ASSERT_TRUE(model.ok()) << model.status();
  for (int64_t seq : {8, 16, 8}) {
    params.seq = seq;
    params.dynamic = false;
    model_ = GenerateModel(*spec, params).value();
    absl::StatusOr<std::vector<HostTensor>> got = (*model)->Run(Inputs());
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(Agree(*got, Evaluated(model_, Inputs()))) << seq;
  }
}

TEST_F(ResilienceTest, WhatIsWrongWithTheModelIsSaid) {
  StartDaemon();
  model_.model.mutable_graph()->mutable_node(0)->set_op_type("FlyToMoon");
  for (const std::string& address : {daemon_->address(), std::string("unix:/nobody/is/here")}) {
    absl::Status status =
        ResilientModel::Load(ClientOf({address}, Quick()), model_.model, ".").status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("FlyToMoon"));
  }
}

// A signal that stops a process takes a moment, in which it may well answer a call.
void AwaitStopped(pid_t pid) {
  auto stopped = [pid] {
    for (const auto& task : std::filesystem::directory_iterator(StrCat("/proc/", pid, "/task"))) {
      std::string stat;
      std::getline(std::ifstream(task.path() / "stat"), stat);
      if (stat.find(") T ") == std::string::npos) return false;
    }
    return true;
  };
  while (!stopped()) std::this_thread::sleep_for(milliseconds(1));
}

// How long a load takes that has nothing to wait for but its deadline. Less than twice that: a
// deadline that each address or each stage has for itself would show. What is above it is for
// importing the model on a machine under load.
constexpr Nanoseconds kDeadline = seconds(3);
constexpr Nanoseconds kAtMost = kDeadline + seconds(2);

TEST_F(ResilienceTest, NoServerHoldsALoadUpBeyondItsDeadline) {
  SilentServer silent(/*trickles=*/false);
  SilentServer trickling(/*trickles=*/true);
  StartDaemon();
  daemon_->Send(SIGSTOP);
  AwaitStopped(daemon_->pid());
  const std::vector<std::vector<std::string>> cases = {
      {silent.address()},
      {trickling.address()},
      {daemon_->address()},
      {"127.0.0.1:1"},  // refuses
      {silent.address(), trickling.address(), daemon_->address()}};
  auto load = [this](const std::vector<std::string>& addresses) {
    ResilientOptions options = Quick();
    options.retry.attempts = 1000;
    options.connect_timeout = seconds(60);
    auto client = ClientOf(addresses, options);
    const Nanoseconds begin = Clock::Real().Now();
    std::unique_ptr<ResilientModel> model =
        Load(client, {.load_deadline = kDeadline, .upgrade = false});
    EXPECT_LT(Clock::Real().Now() - begin, kAtMost) << addresses[0];
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->mode(), RunMode::kOpByOp);
    EXPECT_THAT(model->reason(), HasSubstr("127.0.0.1:"));
  };
  std::vector<std::thread> loads;  // together: all that they do is wait
  for (const std::vector<std::string>& addresses : cases) {
    loads.emplace_back(load, std::cref(addresses));
  }
  for (std::thread& thread : loads) thread.join();
  daemon_->Send(SIGCONT);
}

TEST_F(ResilienceTest, AServiceThatStopsAfterwardsIsNoStallEither) {
  StartDaemon();
  auto client = ClientOf({daemon_->address()}, Quick(Cache()));
  ASSERT_NE(Load(client), nullptr);  // connected
  daemon_->Send(SIGSTOP);
  AwaitStopped(daemon_->pid());
  const Nanoseconds begin = Clock::Real().Now();
  std::unique_ptr<ResilientModel> model =
      Load(client, {.load_deadline = kDeadline, .refresh_cache = false});
  EXPECT_LT(Clock::Real().Now() - begin, kAtMost);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->mode(), RunMode::kFusedFromCache);
  EXPECT_GE(client->breakers()[0].failures, 1) << "it does not say that it is there";
  ExpectRight(*model);
  daemon_->Send(SIGCONT);
}

// Writing takes until somebody lets it go on: a file is given its time first.
class StuckClock final : public Clock {
 public:
  Nanoseconds Now() const override { return Clock::Real().Now(); }
  Nanoseconds UnixTime() const override {
    ++asked;
    while (stuck) std::this_thread::sleep_for(milliseconds(1));
    return Clock::Real().UnixTime();
  }
  mutable std::atomic<int> asked{0};
  std::atomic<bool> stuck{true};
};

TEST_F(ResilienceTest, ACacheThatIsSlowToWriteHoldsNoLoadUp) {
  StartDaemon();
  StuckClock clock;
  auto cache = BundleCache::Open(dir_.path("cache"), {.clock = &clock}).value();
  auto client = ClientOf({daemon_->address()}, Quick(cache));
  // More than may wait: what does not fit is not kept.
  for (int i = 0; i < 20; ++i) {
    absl::StatusOr<std::unique_ptr<ResilientModel>> model =
        ResilientModel::Load(client, model_.model, ".");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->mode(), RunMode::kFusedFromService);
    while (clock.asked == 0) std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_FALSE(client->AwaitKept(milliseconds(10)));
  EXPECT_EQ(client->stats().not_kept, 3) << "one is being written, 16 wait";
  EXPECT_THAT(CacheFiles("plan-"), testing::IsEmpty());
  clock.stuck = false;
  client.reset();
  EXPECT_EQ(CacheFiles("plan-").size(), 1u) << "its end waits for what was given";
}

TEST_F(ResilienceTest, AModelThatEndsDoesNotWaitForATryUnderWay) {
  // Its load is refused at once. The try then has a minute, and waits for a connection or, where
  // the server trickles, for the answer to a call.
  for (bool trickles : {false, true}) {
    SilentServer silent(trickles, /*at_once=*/false);
    ResilientOptions options = Quick();
    options.retry.attempts = 1;
    options.breaker.failures = 0;
    options.connect_timeout = seconds(60);
    auto client = ClientOf({silent.address()}, options);
    ResilientModelOptions model_options;
    model_options.load_deadline = seconds(60);
    model_options.upgrade_every = milliseconds(1);
    std::unique_ptr<ResilientModel> model = Load(client, model_options);
    ASSERT_NE(model, nullptr);
    silent.Listen();
    while (silent.waiting() == 0) std::this_thread::sleep_for(milliseconds(1));
    const Nanoseconds begin = Clock::Real().Now();
    model.reset();
    // gRPC itself gives a connection up after 20 s.
    EXPECT_LT(Clock::Real().Now() - begin, seconds(10)) << trickles;
  }
}

TEST_F(ResilienceTest, AnotherAddressAnswers) {
  StartDaemon();
  SilentServer silent(/*trickles=*/false);
  ResilientOptions options = Quick();
  options.connect_timeout = milliseconds(100);
  auto client = ClientOf({"unix:/nobody/is/here", silent.address(), daemon_->address()}, options);
  std::unique_ptr<ResilientModel> model = Load(client);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->mode(), RunMode::kFusedFromService);
  EXPECT_EQ(client->stats().asked, 3);
  EXPECT_EQ(client->stats().retries, 0);
  ASSERT_NE(Load(client), nullptr);  // begins with who answered
  EXPECT_EQ(client->stats().asked, 4);
}

TEST_F(ResilienceTest, AnOpenCircuitLetsLoadsGoOnAtOnce) {
  SilentServer silent(/*trickles=*/false);
  ResilientOptions options = Quick();
  options.breaker = {.failures = 2, .pause = std::chrono::hours(1)};
  options.connect_timeout = milliseconds(50);
  auto client = ClientOf({silent.address()}, options);
  ASSERT_NE(Load(client, {.upgrade = false}), nullptr);
  EXPECT_EQ(client->breakers()[0].phase, BreakerPhase::kOpen);
  const int64_t asked = client->stats().asked;
  std::unique_ptr<ResilientModel> model = Load(client, {.upgrade = false});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(client->stats().asked, asked);
  EXPECT_EQ(client->stats().breaker_opens, 1);
  EXPECT_THAT(model->reason(), HasSubstr("circuit open since"));
}

TEST_F(ResilienceTest, AServiceThatComesBackMakesTheModelFused) {
  const std::string address = StrCat("unix:", dir_.path("socket"));
  auto client = ClientOf({address}, Quick(Cache()));
  ResilientModelOptions options;
  options.upgrade_every = milliseconds(20);
  std::unique_ptr<ResilientModel> model = Load(client, options);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->mode(), RunMode::kOpByOp);
  const std::vector<HostTensor> wanted = Evaluated(model_, Inputs());
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> runs{0};
  std::thread runner([&] {  // across the change
    while (!stop) {
      absl::StatusOr<std::vector<HostTensor>> got = model->Run(Inputs());
      wrong += got.ok() && Agree(*got, wanted) ? 0 : 1;
      ++runs;
    }
  });
  StartDaemon({"--listen", address});
  for (int i = 0; i < 3000 && model->mode() == RunMode::kOpByOp; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  const int before = runs;
  while (runs < before + 5) std::this_thread::sleep_for(milliseconds(1));
  stop = true;
  runner.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(model->mode(), RunMode::kFusedFromService);
  EXPECT_EQ(model->reason(), "");
  EXPECT_EQ(client->stats().upgrades, 1);
  ExpectRight(*model);
}

// Compiles nothing but the server's probes while there is a file "broken" beside it.
constexpr std::string_view kFailingCompiler = R"(#!/bin/sh
case "$1" in --version|-print-prog-name=*) exec /usr/bin/g++ "$@";; esac
if [ -e "$(dirname "$0")/broken" ] && ! grep -q fusion_probe kernel.cc; then
  echo "kernel.cc:1: error: not today"
  exit 1
fi
exec /usr/bin/g++ "$@"
)";

TEST_F(ResilienceTest, AFailureOfTheServiceThatPassesMakesTheModelFused) {
  const std::string compiler = dir_.Write("own-g++", std::string(kFailingCompiler));
  ASSERT_EQ(chmod(compiler.c_str(), 0700), 0);
  // A sandbox would hide the file beside it.
  StartDaemon({"--allow-compiler", compiler, "--sandbox", "none", "--failure-ttl-seconds", "0.5"});
  const std::string broken = dir_.Write("broken", "");
  auto client = ClientOf({daemon_->address()}, Quick());
  ResilientModelOptions options;
  options.upgrade_every = milliseconds(20);
  std::unique_ptr<ResilientModel> model = Load(client, options);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->mode(), RunMode::kOpByOp);
  EXPECT_THAT(model->reason(), HasSubstr("not today"));
  // The load, and more than one try.
  for (int i = 0; i < 3000 && client->stats().asked < 4; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  ASSERT_GE(client->stats().asked, 4) << model->reason();
  std::filesystem::remove(broken);
  for (int i = 0; i < 6000 && model->mode() == RunMode::kOpByOp; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(model->mode(), RunMode::kFusedFromService) << model->reason();
  EXPECT_EQ(client->stats().upgrades, 1);
  ExpectRight(*model);
}

TEST_F(ResilienceTest, CorruptFilesAreFetchedAgain) {
  StartDaemon();
  ASSERT_NE(Load(ClientOf({daemon_->address()}, Quick(Cache()))), nullptr);
  auto spoil_each = [&](const std::function<void(const std::string&)>& spoil) {
    for (const char* prefix : {"plan-", "kernel-"}) {
      for (const std::string& file : CacheFiles(prefix)) spoil(file);
    }
  };
  using Spoil = std::function<void(const std::string&)>;
  const std::vector<std::pair<std::string, Spoil>> faults = {
      {"cut", [](const std::string& file) { ASSERT_EQ(truncate(file.c_str(), 20), 0); }},
      {"empty", [](const std::string& file) { ASSERT_EQ(truncate(file.c_str(), 0), 0); }},
      {"flipped",
       [](const std::string& file) {
         std::string bytes = ReadFile(file, 1 << 26).value();
         bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
         ASSERT_TRUE(WriteFile(file, bytes).ok());
       }},
      {"a link",
       [this](const std::string& file) {
         std::filesystem::copy_file(file, dir_.path("elsewhere"),
                                    std::filesystem::copy_options::overwrite_existing);
         std::filesystem::remove(file);
         std::filesystem::create_symlink(dir_.path("elsewhere"), file);
       }},
      {"writable by others",
       [](const std::string& file) { ASSERT_EQ(chmod(file.c_str(), 0666), 0); }}};
  for (const auto& [fault, spoil] : faults) {
    SCOPED_TRACE(fault);
    spoil_each(spoil);
    auto away = ClientOf({"unix:/nobody/is/here"}, Quick(Cache()));
    std::unique_ptr<ResilientModel> model = Load(away, {.upgrade = false});
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->mode(), RunMode::kOpByOp);
    EXPECT_GE(away->stats().cache.corrupt, 1);
    ExpectRight(*model);
    auto there = ClientOf({daemon_->address()}, Quick(Cache()));
    model = Load(there);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->mode(), RunMode::kFusedFromService);
    EXPECT_GE(there->stats().fetched_kernels, 1);
    ExpectRight(*model);
    auto again = ClientOf({"unix:/nobody/is/here"}, Quick(Cache()));
    model = Load(again, {.refresh_cache = false});
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->mode(), RunMode::kFusedFromCache);
    EXPECT_EQ(again->stats().cache.corrupt, 0);
    ExpectRight(*model);
  }
}

TEST_F(ResilienceTest, AChangedModelIsAnotherBundle) {
  StartDaemon();
  ASSERT_NE(Load(ClientOf({daemon_->address()}, Quick(Cache()))), nullptr);
  model_ = Mlp(17);
  auto client = ClientOf({"unix:/nobody/is/here"}, Quick(Cache()));
  EXPECT_EQ(Load(client, {.upgrade = false})->mode(), RunMode::kOpByOp);
  EXPECT_EQ(client->stats().cache.misses, 1);
}

TEST_F(ResilienceTest, LoadsNeverFailWhileTheServiceIsKilledAndStartedAgain) {
  constexpr int kClients = 50;
  constexpr int kKills = 5;
  const std::string address = StrCat("unix:", dir_.path("socket"));
  StartDaemon({"--listen", address});
  std::vector<std::vector<HostTensor>> wanted;
  std::vector<GeneratedModel> models;
  for (int64_t rows : {3, 4, 5, 6}) {
    models.push_back(Mlp(rows));
    wanted.push_back(Evaluated(models.back(), GenerateInputs(models.back().inputs, 3)));
  }
  std::atomic<bool> stop{false};
  std::atomic<int64_t> failed{0};
  std::atomic<int64_t> wrong{0};
  std::atomic<int64_t> fused{0};
  std::atomic<int64_t> fallbacks{0};
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&, c] {
      // Half of them cache.
      ResilientOptions options = Quick(c % 2 == 0 ? Cache() : nullptr);
      options.load_deadline = seconds(20);
      auto client = ClientOf({address}, options);
      for (size_t i = static_cast<size_t>(c); !stop; ++i) {
        const size_t m = i % models.size();
        absl::StatusOr<std::unique_ptr<ResilientModel>> model =
            ResilientModel::Load(client, models[m].model, ".", {.upgrade_every = milliseconds(50)});
        failed += model.ok() ? 0 : 1;
        if (!model.ok()) continue;
        fused += (*model)->mode() == RunMode::kOpByOp ? 0 : 1;
        absl::StatusOr<std::vector<HostTensor>> got =
            (*model)->Run(GenerateInputs(models[m].inputs, 3));
        wrong += got.ok() && Agree(*got, wanted[m]) ? 0 : 1;
      }
      fallbacks += client->stats().fallbacks;
    });
  }
  for (int kill = 0; kill < kKills; ++kill) {
    std::this_thread::sleep_for(milliseconds(400));
    daemon_->Send(SIGKILL);
    daemon_->Wait();
    std::this_thread::sleep_for(milliseconds(300));
    std::filesystem::remove(dir_.path("socket"));
    StartDaemon({"--listen", address});
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(fused, 0);
  EXPECT_GT(fallbacks, 0);
}

constexpr const char* kChildWord = "--another-runtime";

// This program again, as another runtime on the same machine.
pid_t StartRuntime(std::string cache, std::string server) {
  std::string word = kChildWord;
  char* argv[] = {word.data(), word.data(), cache.data(), server.data(), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv, environ);
  FUSION_CHECK(error == 0, "this program can be started");
  return child;
}

// What it does; its exit code.
int RunRuntime(const std::string& cache, const std::string& server) {
  for (int round = 0; round < 3; ++round) {
    for (int64_t rows = 1; rows <= 8; ++rows) {
      ResilientOptions options;
      options.cache = BundleCache::Open(cache).value();
      auto client = ResilientClient::Create({server}, options).value();
      const GeneratedModel generated = Mlp(rows);
      absl::StatusOr<std::unique_ptr<ResilientModel>> model =
          ResilientModel::Load(client, generated.model, ".");
      const bool good = model.ok() && (*model)->mode() == RunMode::kFusedFromService &&
                        (*model)->Run(GenerateInputs(generated.inputs, 1)).ok() &&
                        client->stats().cache.corrupt == 0;
      if (!good) return 1;
    }
  }
  return 0;
}

TEST_F(ResilienceTest, ProcessesShareACache) {
  StartDaemon();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(StartRuntime(dir_.path("cache"), daemon_->address()));
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  // What they left is whole.
  EXPECT_THAT(CacheFiles("new-"), testing::IsEmpty());
  int found = 0;
  for (int64_t rows = 1; rows <= 8; ++rows) {
    model_ = Mlp(rows);
    auto client = ClientOf({"unix:/nobody/is/here"}, Quick(Cache()));
    std::unique_ptr<ResilientModel> model =
        Load(client, {.upgrade = false, .refresh_cache = false});
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(client->stats().cache.corrupt, 0);
    found += model->mode() == RunMode::kFusedFromCache ? 1 : 0;
    ExpectRight(*model);
  }
  EXPECT_EQ(found, 8);
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == fusion::kChildWord) {
    return fusion::RunRuntime(argv[2], argv[3]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
