// Attackers, with a neighbour beside them: a caller whose plan is known and who must not notice.
// Each attack ends in clear refusals; the server's memory grows by no more than is promised, and
// afterwards all is as it was. How much the neighbour noticed is recorded for the acceptance rows:
// his 99th percentile, and the same beside as many callers at the same pace who mean no harm. Of
// this machine the attackers take what server and neighbour leave, as if they were elsewhere.
//
// FUSION_ATTACK_ROUNDS=5: each attack so often, and in turn on a gRPC server that does nothing but
// answer (BareServer), which has a neighbour, too: what no server of gRPC's could spare hers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <list>

#include "core/base/sanitizer.h"
#include "core/base/statistics/median_interval.h"
#include "core/base/statistics/quantile.h"
#include "tests/service/process_memory.h"
#include "tests/service/raw_http2.h"
#include "tests/service/run_program.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using grpc::StatusCode;
using std::string_view;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPlan = "/fusion.v1.FusionService/PlanFusion";
constexpr const char* kCapabilities = "/fusion.v1.FusionService/GetCapabilities";
constexpr const char* kKernels = "/fusion.v1.FusionService/GetKernels";
constexpr const char* kStored = "/fusion.v1.FusionService/GetStored";
// Beyond what the idle server has, at the default limits.
constexpr int64_t kMemoryBytes = int64_t{512} << 20;
constexpr int kAttackers = 4;
// Between what one of them does.
constexpr Nanoseconds kPace = milliseconds(10);
constexpr Nanoseconds kTime = seconds(3);
constexpr Nanoseconds kPatience = seconds(5);  // of an attacker whose bytes are not taken
const std::string kEvil = "\"*/ }; system(\"touch /tmp/pwned\"); /* ' \\ \n %s ${x} $(id) `id`";

Nanoseconds Now() { return Clock::Real().Now(); }

/// The neighbour, in a process of his own: what the attackers' gRPC is at is nothing to him.
class Neighbour {
 public:
  /// `request`: a file with its bytes. Until the first call has ended.
  Neighbour(const std::string& address, const std::string& request)
      : process_({NEIGHBOUR, address, request}) {
    EXPECT_TRUE(Eventually([this] { return !Calls().empty(); })) << process_.err();
  }

  /// Of his calls that have begun since he was asked last: the 99th percentile, in ms; of none the
  /// usual time, in which none ended.
  double P99() {
    const Nanoseconds since = std::exchange(asked_, Now());
    std::vector<double> ms;
    for (const Called& call : Calls()) {
      if (call.begin >= since) ms.push_back(call.ms);
    }
    return ms.empty() ? ToMilliseconds(kTime) : Quantile(ms, 0.99);
  }
  // Whether he calls, from the call after this one on.
  void SetCalling(bool calling) { kill(process_.pid(), calling ? SIGUSR2 : SIGUSR1); }
  int64_t retries() const {
    int64_t retries = 0;
    for (const Called& call : Calls()) retries += call.retries;
    return retries;
  }
  std::vector<std::string> failures() const {
    std::vector<Called> calls = Calls();
    std::vector<std::string> failures;
    if (calls.empty()) failures.push_back(StrCat("he says nothing: ", process_.err()));
    for (Called& call : calls) {
      if (!call.error.empty()) failures.push_back(std::move(call.error));
    }
    return failures;
  }

 private:
  struct Called {
    Nanoseconds begin{0};
    double ms = 0;
    int64_t retries = 0;
    std::string error;
  };
  std::vector<Called> Calls() const {
    std::vector<Called> calls;
    std::istringstream out(process_.out());
    for (std::string line; std::getline(out, line);) {
      std::istringstream words(line);
      int64_t begin = 0;
      Called call;
      words >> begin >> call.ms >> call.retries >> std::ws;
      std::getline(words, call.error);
      call.begin = Nanoseconds(begin);
      calls.push_back(std::move(call));
    }
    return calls;
  }

  const TestProcess process_;
  Nanoseconds asked_{0};
};

/// Of all its threads, since it began.
Nanoseconds CpuTimeOf(pid_t pid) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

/// Waits until a server, which nobody calls, has nothing left to do of what it was sent; for half a
/// minute at most.
bool Rests(pid_t server) {
  for (const Nanoseconds end = Now() + seconds(30); Now() < end;) {
    const Nanoseconds before = CpuTimeOf(server);
    std::this_thread::sleep_for(milliseconds(200));
    if (CpuTimeOf(server) - before < milliseconds(10)) return true;
  }
  return false;
}

/// The most memory of a process that was seen.
class MemoryWatch {
 public:
  explicit MemoryWatch(pid_t pid) : pid_(pid), thread_([this] { Run(); }) {}
  ~MemoryWatch() { Stop(); }
  int64_t Stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    return most_;
  }

 private:
  void Run() {
    while (!over_) {
      most_ = std::max(most_.load(), MemoryOf(pid_, "VmRSS"));
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  const pid_t pid_;
  std::atomic<bool> over_{false};
  std::atomic<int64_t> most_{0};
  std::thread thread_;
};

class HostileTest : public ServerTest {
 protected:
  // Each connection of the attackers is a file of ours.
  static void SetUpTestSuite() {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    // The server leaves as many to itself.
    most_connections_ = static_cast<int>(std::min<rlim_t>(10'000, files.rlim_max - 1100));
  }

  void SetUp() override { Begin(); }
  // `beside`: where the neighbour calls; the first address if empty.
  void Begin(const std::vector<std::string>& args = {}, const std::string& beside = "") {
    neighbour_.reset();
    Start(args);
    known_ = caller_->Plan(RequestFor(SentModel("bert_layer")));
    neighbour_ =
        std::make_unique<Neighbour>(beside.empty() ? daemon_->address() : beside,
                                    dir_.Write("known", KnownRequest().SerializeAsString()));
    std::this_thread::sleep_for(milliseconds(500));
    neighbour_->P99();  // its first calls
  }

  void TearDown() override {
    if (neighbour_ != nullptr) {
      EXPECT_THAT(neighbour_->failures(), testing::IsEmpty()) << "others are served meanwhile";
      neighbour_.reset();
    }
    EXPECT_TRUE(caller_->Plan(KnownRequest()).plan_key() == known_.plan_key());
    EXPECT_EQ(daemon_->Stop().exit_code, 0) << "nothing of all this broke the server";
  }

  static v1::PlanFusionRequest KnownRequest() { return RequestFor(SentModel("bert_layer")); }

  /// Who is attacked.
  struct Attacked {
    std::string address;
    bool bare = false;  // nothing is expected of its answers
  };
  using Attack = std::function<void(const Attacked& attacked)>;

  // The attack, and what the neighbour and the server's memory say to it. `comparable`: it means
  // the same to a server of which only PlanFusion answers.
  void Under(const Attack& attack, bool comparable = true) {
    const char* rounds = std::getenv("FUSION_ATTACK_ROUNDS");
    const bool compared = rounds != nullptr && comparable;
    std::vector<double> ms, usual_ms, bare_ms, bare_usual_ms;
    int64_t grew = 0, idle = 0;
    for (int round = 0; round < (rounds == nullptr ? 1 : std::atoi(rounds)); ++round) {
      neighbour_->SetCalling(false);
      EXPECT_TRUE(Rests(daemon_->pid())) << "of the attack of the round before";
      neighbour_->SetCalling(true);
      usual_ms.push_back(BesideHonestCallers(daemon_->address(), *neighbour_));
      if (round == 0) idle = MemoryOf(daemon_->pid(), "VmRSS");
      MemoryWatch watch(daemon_->pid());
      attack({daemon_->address()});
      ms.push_back(neighbour_->P99());
      grew = std::max(grew, watch.Stop() - idle);
      unread_.clear();
      if (!compared) continue;
      neighbour_->SetCalling(false);
      EXPECT_TRUE(Rests(daemon_->pid()));
      // A new one each time: some attacks leave it busy for minutes.
      TestProcess bare({BARE_SERVER, dir_.Write("answer", known_.SerializeAsString())});
      ASSERT_TRUE(Eventually([&] { return bare.out().ends_with('\n'); }));
      const std::string address = StrCat("127.0.0.1:", StripSpace(bare.out()));
      Neighbour neighbour(address, dir_.Write("bare-known", KnownRequest().SerializeAsString()));
      bare_usual_ms.push_back(BesideHonestCallers(address, neighbour));
      attack({address, /*bare=*/true});
      bare_ms.push_back(neighbour.P99());
      unread_.clear();
    }
    Record("p99", ms, usual_ms);
    if (compared) Record("bare_p99", bare_ms, bare_usual_ms);
    RecordProperty("neighbour_retries", StrCat(neighbour_->retries()));
    RecordProperty("grew_mib", StrCat(grew >> 20));
    if (kSanitized) return;  // they keep freed memory
    EXPECT_LE(grew, kMemoryBytes);
  }

  // The neighbour's 99th percentile, in ms.
  static double BesideHonestCallers(const std::string& address, Neighbour& neighbour) {
    const FusionCaller honest(address);
    const v1::PlanFusionRequest known = KnownRequest();
    neighbour.P99();  // what was before
    Together([&](int) { honest.Plan(known); });
    return neighbour.P99();
  }

  static void Record(const std::string& name, const std::vector<double>& ms,
                     const std::vector<double>& usual_ms) {
    const MedianInterval ratio = MedianOf(Ratios(ms, usual_ms));
    auto rounded = [](double value) { return StrCat(std::round(value * 1e3) / 1e3); };
    RecordProperty(name + "_ratio", rounded(ratio.median));
    RecordProperty(name + "_ratio_low", rounded(ratio.low));
    RecordProperty(name + "_ratio_high", rounded(ratio.high));
    RecordProperty(name + "_ms", rounded(MedianOf(ms).median));
  }

  // As many attackers as there are, each with `act` once.
  static void Each(const std::function<void(int attacker)>& act) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kAttackers; ++i) {
      threads.emplace_back([&act, i] {
        EXPECT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19), 0);
        act(i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Each with `act` again and again for the usual time.
  static void Together(const std::function<void(int attacker)>& act) {
    Each([&act, end = Now() + kTime](int attacker) {
      for (Nanoseconds next = Now(); Now() < end; next += kPace) {
        act(attacker);
        std::this_thread::sleep_until(std::chrono::steady_clock::time_point(next + kPace));
      }
    });
  }

  // Heads of calls in parts, of which there is no last one. Gives the bytes that were taken.
  // For a third of the time, and until it is `enough`, for 40 s at most.
  static int64_t SendHeadsThatNeverEnd(
      const std::string& address, const std::function<bool()>& enough = [] { return true; }) {
    std::atomic<int64_t> sent{0};
    const RawHttp2::Fields more = {{"x-more", std::string(8 << 10, 'm')}};
    const Nanoseconds begin = Now();
    Together([&](int) {
      RawHttp2 one(address);
      one.Hello();
      one.Call(1, kPlan, {}, /*part=*/true);
      bool goes_on = true;
      while (goes_on) {
        for (int i = 0; i < 64 && goes_on; ++i) {  // half a MiB between two looks
          goes_on = one.Continue(1, more);
          if (goes_on) sent += 8 << 10;
        }
        const Nanoseconds took = Now() - begin;
        goes_on = goes_on && (took < kTime / 3 || (took < seconds(40) && !enough()));
      }
    });
    return sent;
  }

  // Makes calls on connections that read no answer until it is `enough`, for 40 s at most.
  void LeaveUnread(const std::string& address, const std::function<bool()>& enough,
                   const std::function<void(RawHttp2& connection, uint32_t stream)>& call) {
    unread_ = std::vector<std::list<RawHttp2>>(kAttackers);
    const Nanoseconds end = Now() + seconds(40);
    Each([&](int attacker) {
      auto& own = unread_[static_cast<size_t>(attacker)];
      while (!enough() && Now() < end) {
        own.emplace_back(address).Hello(/*answer_window=*/0);
        for (uint32_t stream = 1; stream < 200 && own.back().Read(); stream += 2) {
          call(own.back(), stream);
        }
      }
    });
  }
  // Since the log had so many bytes.
  bool ClosedForUnread(size_t since) const {
    return daemon_->output().find("\"answer_bytes_not_read\":", since) != std::string::npos;
  }

  // Some dozen bytes to ask for it, and of each answer a copy of its own.
  v1::GetStoredRequest LargeStored() const {
    TestModel chain;
    chain.Input("0", {8, 64});
    constexpr int kNodes = 3000;
    for (int i = 0; i < kNodes; ++i) {
      chain.Node(i % 2 == 0 ? "Softmax" : "Relu", {StrCat(i)}, {StrCat(i + 1)});
    }
    chain.Output(StrCat(kNodes));
    v1::GetStoredRequest wanted;
    wanted.set_plan(caller_->Plan(RequestFor(chain.proto(), v1::PLAN_MODE_PLAN_ONLY)).plan_key());
    return wanted;
  }

  // Each request is refused, in words, by each attacker again and again.
  void Refused(const std::vector<v1::PlanFusionRequest>& requests, StatusCode code) {
    std::atomic<int64_t> calls{0};
    Under([&](const Attacked& attacked) {
      const FusionCaller attacker(attacked.address);
      Together([&](int) {
        const auto call = static_cast<size_t>(calls++);
        v1::PlanFusionResponse response;
        grpc::Status status =
            attacker.Plan(requests[call % requests.size()], &response, seconds(30));
        if (attacked.bare) return;
        // They keep freed memory, for which the server closes the connection of who sends most.
        if (kSanitized && status.error_code() == StatusCode::UNAVAILABLE) return;
        EXPECT_EQ(status.error_code(), code) << status.error_message();
        EXPECT_THAT(status.error_message(), Not(testing::IsEmpty()));
      });
    });
    RecordProperty("refused", StrCat(calls.load()));
    EXPECT_GE(calls, static_cast<int64_t>(requests.size()));
  }

  static int most_connections_;
  v1::PlanFusionResponse known_;
  std::unique_ptr<Neighbour> neighbour_;
  std::vector<std::list<RawHttp2>> unread_;  // by attacker
};
int HostileTest::most_connections_ = 0;

// ---- Graphs ----

std::string Field(int number, string_view bytes) {
  std::string out;
  auto varint = [&out](size_t value) {
    for (; value > 127; value >>= 7) out += static_cast<char>((value & 127) | 128);
    out += static_cast<char>(value);
  };
  varint(static_cast<size_t>(number) << 3 | 2);
  varint(bytes.size());
  return out.append(bytes);
}

TEST_F(HostileTest, DeepNesting) {
  std::vector<v1::PlanFusionRequest> requests;
  for (int depth : {90, 1000, 20'000}) {
    std::string node;
    for (int i = 0; i < depth; ++i)
      node = Field(1, Field(5, Field(6, node)));  // node, attribute, g
    requests.push_back(RequestFor(LinearReluModel().proto()));
    requests.back().set_onnx_model(Field(7, node));
  }
  Refused(requests, StatusCode::INVALID_ARGUMENT);
}

TEST_F(HostileTest, DimsAndProductsBeyondEveryNumber) {
  std::vector<v1::PlanFusionRequest> requests;
  auto add = [&requests](TestModel& m) { requests.push_back(RequestFor(m.proto())); };
  for (const std::vector<TestModel::TestDim>& dims :
       {std::vector<TestModel::TestDim>{INT64_MAX},
        {INT64_MIN},
        {INT64_MAX, INT64_MAX, 2},
        {int64_t{1} << 32, int64_t{1} << 32},
        std::vector<TestModel::TestDim>(63, TestModel::TestDim(2))}) {
    TestModel m;
    m.Input("x", dims).Node("Relu", {"x"}, {"y"}).Output("y");
    add(m);
  }
  // Products that only the nodes make.
  TestModel outer;
  outer.Input("a", {int64_t{1} << 39, 1}).Input("b", {1, int64_t{1} << 39});
  outer.Node("Add", {"a", "b"}, {"y"}).Output("y");
  add(outer);
  TestModel expanded;
  expanded.Input("x", {1}).Ints("shape", {int64_t{1} << 31, int64_t{1} << 31, 8});
  expanded.Node("Expand", {"x", "shape"}, {"y"}).Output("y");
  add(expanded);
  TestModel repeated;
  repeated.Input("x", {2, 2}).Ints("times", {INT64_MAX, INT64_MAX});
  repeated.Node("Tile", {"x", "times"}, {"y"}).Output("y");
  add(repeated);
  Refused(requests, StatusCode::INVALID_ARGUMENT);
}

TEST_F(HostileTest, NamesThatAreCode) {
  TestModel model = LinearReluModel(8, kEvil);
  model.proto().set_producer_name(kEvil);
  model.graph()->set_name(kEvil);
  v1::PlanFusionRequest request = RequestFor(model.proto());
  request.set_request_id(kEvil);
  for (v1::DumpKind kind : {v1::DUMP_KIND_SOURCE, v1::DUMP_KIND_SCHEDULE}) request.add_dumps(kind);
  Under([&](const Attacked& attacked) {
    const FusionCaller attacker(attacked.address);
    Together([&](int) {
      grpc::ClientContext context;
      context.AddMetadata("x-fusion-tenant", "a'; rm -rf $HOME");
      context.AddMetadata("traceparent", "00-$(id)-`id`-01");
      v1::PlanFusionResponse response;
      grpc::Status status = attacker.stub().PlanFusion(&context, request, &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      if (attacked.bare) return;
      EXPECT_THAT(response.binding().inputs(), testing::ElementsAre(kEvil + "x")) << "just a name";
      ASSERT_FALSE(response.dumps().empty());
      for (const v1::Dump& dump : response.dumps()) {
        if (dump.kind() != v1::DUMP_KIND_SOURCE) continue;
        EXPECT_THAT(dump.text(), Not(HasSubstr("system"))) << dump.name();
        EXPECT_THAT(dump.text(), Not(HasSubstr("pwned"))) << dump.name();
      }
    });
  });
  EXPECT_FALSE(std::filesystem::exists("/tmp/pwned"));
  // Every line of the log is one object still.
  std::istringstream log(daemon_->output());
  for (std::string line; std::getline(log, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

TEST_F(HostileTest, ExpressionBombs) {
  TestModel m;
  m.Input("x", {8, 16}).Node("Bomb", {"x"}, {"y"}, "bomb").Domain("acme").Output("y");
  std::vector<v1::PlanFusionRequest> requests;
  auto add = [&](const std::string& text) {
    requests.push_back(RequestFor(m.proto()));
    requests.back().mutable_options()->set_custom_ops(text);
  };
  auto times = [](const std::string& piece, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += piece;
    return all;
  };
  std::string doubling = "op acme.Bomb(x) =\n";  // 2^200 reads of x, written out
  for (int i = 0; i < 200; ++i) {
    doubling +=
        StrCat("  let v", i, " = ", i == 0 ? "x" : StrCat("exp(v", i - 1, " + v", i - 1, ")"),
               " * ", i == 0 ? "x" : StrCat("sin(v", i - 1, ")"), ";\n");
  }
  add(doubling + "  v199 + " + times("exp(", 100) + "v199" + times(")", 100) + "\n");
  add("op acme.Bomb(x) = " + times("(", 20'000) + "x" + times(")", 20'000));
  add("op acme.Bomb(x) = " + times("-", 60'000) + "x");
  add("op acme.Bomb(x) = x" + times(" + exp(x)", 7'000));
  add("op acme.Bomb(x) = " + times("x ^ ", 15'000) + "x");
  add("op acme.Bomb(x[m, k]) -> [m, k] = sum(a: 1099511627776, sum(b: 1099511627776, x[m, k]))");
  add("op acme.Bomb(x[m, k]) -> [m, k] = x[m * 1099511627775 * 1099511627775, k]");
  add(times("op acme.Bomb(x) = x\n", 3'000));
  add(std::string(1 << 20, 'x'));
  Refused(requests, StatusCode::INVALID_ARGUMENT);
}

TEST_F(HostileTest, IsaClaims) {
  // Unknown ones, and words for a compiler or a shell.
  std::vector<v1::PlanFusionRequest> requests;
  for (const char* isa : {"avx1024", "avx2; touch /tmp/pwned", "-fplugin=/tmp/evil.so", "native",
                          "../../bin/sh", "avx2 -include/etc/passwd", "AVX2", "avx2\n"}) {
    requests.push_back(KnownRequest());
    requests.back().mutable_target()->set_isa(isa);
  }
  Refused(requests, StatusCode::UNIMPLEMENTED);
  EXPECT_FALSE(std::filesystem::exists("/tmp/pwned"));
  // Known ones that need not be true: the caller's loss alone.
  const nlohmann::json isas = Status()["toolchain"]["isas"];
  ASSERT_FALSE(isas.empty());
  for (const auto& [isa, entry] : isas.items()) {
    if (!entry["supported"].get<bool>()) continue;
    v1::PlanFusionRequest request = KnownRequest();
    request.mutable_target()->set_isa(isa);
    v1::PlanFusionResponse response = caller_->Plan(request);
    for (const v1::KernelStatus& kernel : response.kernels()) {
      EXPECT_EQ(kernel.state(), v1::KERNEL_STATE_READY) << isa;
    }
  }
  EXPECT_EQ(Metric("fusion_worker_restarts_total"), 0) << "no kernel ran where it cannot";
}

// ---- Connections ----

std::vector<std::unique_ptr<RawHttp2>> Connect(const std::string& address, int count) {
  std::vector<std::unique_ptr<RawHttp2>> all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<RawHttp2>(address));
  return all;
}

TEST_F(HostileTest, TenThousandIdleConnections) {
  std::vector<std::unique_ptr<RawHttp2>> idle;
  const double files = Metric("process_open_fds");
  Under([&](const Attacked& attacked) {
    idle.clear();
    idle = Connect(attacked.address, most_connections_);
    for (size_t i = 0; i < idle.size(); ++i) {
      ASSERT_TRUE(idle[i]->connected()) << i;
      if (i % 2 == 0) idle[i]->Hello();  // the others say nothing at all
    }
    if (!attacked.bare) {
      ASSERT_TRUE(Eventually([&] { return Metric("fusion_connections") >= most_connections_; }));
    }
    const FusionCaller late(attacked.address);
    EXPECT_EQ(late.Plan(KnownRequest()).plan_key(), known_.plan_key()) << "there is room for more";
    std::this_thread::sleep_for(kTime);
  });
  RecordProperty("connections", StrCat(most_connections_));
  EXPECT_EQ(Metric("fusion_connections_refused_total"), 0);
  idle.clear();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_connections") < 10; }));
  EXPECT_TRUE(Eventually([&] { return Metric("process_open_fds") < files + 10; }));
}

TEST_F(HostileTest, ConnectionsBeyondTheLimitAreClosedAndTheServerIsNotDeafAfterwards) {
  Begin({"--max-connections", "64"});
  std::vector<std::unique_ptr<RawHttp2>> many = Connect(daemon_->address(), 200);
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_connections_refused_total") >= 100; }));
  EXPECT_LE(Metric("fusion_connections"), 64);
  many.clear();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_connections") < 10; }));
  EXPECT_EQ(FusionCaller(daemon_->address()).Plan(KnownRequest()).plan_key(), known_.plan_key());
}

TEST_F(HostileTest, WhereFileDescriptorsAreFewConnectionsLeaveSomeToTheServer) {
  neighbour_.reset();
  const std::string program =
      dir_.Write("few-files", StrCat("#!/bin/sh\nulimit -n 400\nexec ", FUSIOND, " \"$@\"\n"));
  ASSERT_EQ(chmod(program.c_str(), 0700), 0);
  absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(program);
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  daemon_ = *std::move(daemon);
  caller_ = std::make_unique<FusionCaller>(daemon_->address());
  EXPECT_THAT(daemon_->output(), HasSubstr("few_file_descriptors"));
  std::vector<std::unique_ptr<RawHttp2>> many = Connect(daemon_->address(), 600);
  for (auto& one : many) one->Hello();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_connections_refused_total") >= 300; }));
  EXPECT_EQ(Metric("fusion_connections_limit"), 200);
  many.clear();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_connections") < 10; }));
  known_ = caller_->Plan(KnownRequest());  // with files for a store, workers and compilers
  for (const v1::KernelStatus& kernel : known_.kernels()) {
    EXPECT_EQ(kernel.state(), v1::KERNEL_STATE_READY);
  }
}

TEST_F(HostileTest, IdleConnectionsAreClosedAfterTheirTime) {
  Begin({"--connection-idle-seconds", "1"});
  neighbour_.reset();
  std::vector<std::unique_ptr<RawHttp2>> idle = Connect(daemon_->address(), 20);
  for (auto& one : idle) one->Hello();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_connections") == 0; }));
  EXPECT_EQ(caller_->Plan(KnownRequest()).plan_key(), known_.plan_key()) << "a client comes back";
}

TEST_F(HostileTest, BytesThatAreNoHttp2) {
  std::string noise;
  for (int i = 0; i < 1 << 16; ++i) noise += static_cast<char>(i * 7919 >> 3);
  const std::vector<std::string> greetings = {"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
                                              "\x16\x03\x01\x02", noise, std::string(1 << 16, '\0'),
                                              "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + noise};
  Under([&](const Attacked& attacked) {
    Together([&](int) {
      for (const std::string& greeting : greetings) RawHttp2(attacked.address).Send(greeting);
    });
  });
}

// ---- Calls ----

TEST_F(HostileTest, GiantMetadata) {
  const std::string giant(1 << 20, 'm');
  grpc::ClientContext context;
  context.AddMetadata("x-fusion-tenant", giant);
  v1::PlanFusionResponse response;
  grpc::Status status = caller_->stub().PlanFusion(&context, KnownRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  // gRPC parses what comes in many frames again and again: a megabyte, a hundred times a second, is
  // all that it does then. Here it is eight times of what a call may have.
  const std::string large(64 << 10, 'm');
  std::atomic<int64_t> sent{0};
  Under([&](const Attacked& attacked) {
    std::vector<std::unique_ptr<RawHttp2>> all = Connect(attacked.address, kAttackers);
    std::vector<uint32_t> next(kAttackers, 1);
    for (auto& one : all) one->Hello();
    Together([&](int i) {
      const auto attacker = static_cast<size_t>(i);
      if (!all[attacker]->Read() ||
          !all[attacker]->Call(next[attacker], kPlan, {{"x-more", large}})) {
        all[attacker] = std::make_unique<RawHttp2>(attacked.address);
        all[attacker]->Hello();
        next[attacker] = 1;
        return;
      }
      next[attacker] += 2;
      ++sent;
    });
  });
  RecordProperty("sent_mib", StrCat(sent.load() * 64 >> 10));
  EXPECT_GT(sent, 0);
}

TEST_F(HostileTest, HeadsThatNeverEnd) {
  std::atomic<int64_t> sent{0};
  Under([&](const Attacked& attacked) { sent += SendHeadsThatNeverEnd(attacked.address); });
  RecordProperty("sent_mib", StrCat(sent >> 20));
}

TEST_F(HostileTest, HeadsThatNeverEndOverASocketFile) {
  const std::string file = StrCat("unix:", dir_.path("s"));
  Begin({"--listen", "127.0.0.1:0", "--listen", file}, /*beside=*/file);
  std::atomic<int64_t> sent{0};
  Under([&](const Attacked& attacked) {
    // On a slow machine it takes longer until so much is held that a connection is closed.
    sent +=
        attacked.bare ? SendHeadsThatNeverEnd(attacked.address) : SendHeadsThatNeverEnd(file, [&] {
          return daemon_->output().find("sent_for_nothing_bytes") != std::string::npos;
        });
  });
  RecordProperty("sent_mib", StrCat(sent >> 20));
  EXPECT_GT(sent >> 20, 100) << "or nothing was tried";
  EXPECT_THAT(daemon_->output(),
              testing::ContainsRegex("\"connection_closed\",\"peer\":\"unix:uid=[0-9]+,pid=[0-9]+,"
                                     "connection=[0-9]+\",\"sent_for_nothing_bytes\":"));
  EXPECT_EQ(neighbour_->retries(), 0) << "his connection to the same file is left alone";
}

TEST_F(HostileTest, RequestsThatNeverEnd) {
  std::atomic<int64_t> taken{0};
  Under([&](const Attacked& attacked) {
    const std::string half = GrpcMessage(std::string(32 << 20, 'r')).substr(0, 24 << 20);
    Each([&](int) {
      std::vector<std::unique_ptr<RawHttp2>> all = Connect(attacked.address, 10);
      for (auto& one : all) {
        one->Hello();
        one->Call(1, kPlan);
        taken += static_cast<int64_t>(one->Data(1, half, /*last=*/false, milliseconds(500)));
      }
      std::this_thread::sleep_for(kTime);
    });
  });
  RecordProperty("sent_mib", StrCat(taken >> 20));
  EXPECT_GT(taken >> 20, 100) << "or nothing was tried";
  // Who asks honestly is served.
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_connections") < 10; }));
}

TEST_F(HostileTest, AnswersThatNobodyReads) {
  constexpr int kConnections = 64, kCallsAtOnce = 10;
  const std::string warm = KnownRequest().SerializeAsString();
  v1::GetKernelsRequest wanted;
  for (const std::string& key : KeysOf(known_)) wanted.add_keys(key);
  const std::string kernels = wanted.SerializeAsString(), nothing;
  struct Reader {
    std::unique_ptr<RawHttp2> connection;
    uint32_t next_stream = 1;
  };
  std::vector<Reader> all;
  std::atomic<int64_t> calls{0};
  Under([&](const Attacked& attacked) {
    all = std::vector<Reader>(kConnections);
    for (Reader& reader : all) {
      reader.connection = std::make_unique<RawHttp2>(attacked.address);
      reader.connection->Hello(/*answer_window=*/0);
    }
    std::vector<size_t> turn(kAttackers, 0);
    Together([&](int i) {
      const auto attacker = static_cast<size_t>(i);
      const size_t own = turn[attacker]++ % (kConnections / kAttackers);
      Reader& reader = all[attacker * (kConnections / kAttackers) + own];
      for (int call = 0; call < kCallsAtOnce && reader.connection->Read(); ++call) {
        const bool plan = call % 2 == 0;
        const bool other = call % 4 == 3;  // kinds of calls that take a thread
        const uint32_t stream = std::exchange(reader.next_stream, reader.next_stream + 2);
        reader.connection->Call(stream, plan ? kPlan : other ? kCapabilities : kKernels);
        const std::string& request = plan ? warm : other ? nothing : kernels;
        const bool sent = reader.connection->Message(stream, request, milliseconds(20)) > 0;
        if (!attacked.bare) calls += sent ? 1 : 0;
      }
    });
  });
  const v1::PlanFusionRequest cold = RequestFor(LinearReluModel(77).proto());
  v1::PlanFusionResponse made;
  grpc::Status status = caller_->Plan(cold, &made, seconds(60));
  EXPECT_TRUE(status.ok()) << "with a thread, too: " << status.error_message();
  RecordProperty("unread_calls", StrCat(calls.load()));
  EXPECT_GT(calls, 1000) << "or nothing was tried";
  EXPECT_EQ(neighbour_->retries(), 0) << "who sends requests is none of those who are closed";
  all.clear();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_streams") == 0; }));
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") <= 1; }));
}

TEST_F(HostileTest, LargeAnswersThatNobodyReadsEndTheConnection) {
  const v1::GetStoredRequest wanted = LargeStored();
  v1::GetStoredResponse stored;
  grpc::ClientContext context;
  ASSERT_TRUE(caller_->stub().GetStored(&context, wanted, &stored).ok());
  const auto answer = static_cast<int64_t>(stored.ByteSizeLong());
  ASSERT_GT(answer, 200 << 10);
  const std::string request = wanted.SerializeAsString();
  const int64_t enough = 4 * kMemoryBytes / answer;
  std::atomic<int64_t> calls{0};
  const Attack attack = [&](const Attacked& attacked) {
    const int64_t before = calls;
    const size_t said = daemon_->output().size();
    LeaveUnread(
        attacked.address, [&] { return calls - before >= enough && ClosedForUnread(said); },
        [&](RawHttp2& connection, uint32_t stream) {
          connection.Call(stream, kStored);
          if (connection.Message(stream, request, milliseconds(20)) > 0) ++calls;
        });
    EXPECT_TRUE(ClosedForUnread(said));
  };
  Under(attack, /*comparable=*/false);
  RecordProperty("answer_bytes", StrCat(answer));
  RecordProperty("unread_calls", StrCat(calls.load()));
  EXPECT_GT(Metric("fusion_connections_closed_total"), 0);
  EXPECT_GT(Metric("fusion_admission_rejected_total{reason=\"unread\"}"), 0);
  unread_.clear();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") <= 1; }));
}

TEST_F(HostileTest, DistinctAnswersThatNobodyReadsCountAlsoOnceCachesHaveForgottenThem) {
  Begin({"--memory-limit", "16MiB"});
  // Another plan for each number of rows; of what the server keeps of it the answer has a part.
  constexpr int kNodes = 1000;
  TestModel chain;
  chain.Input("0", {"rows", 64});
  for (int i = 0; i < kNodes; ++i) {
    chain.Node(i % 2 == 0 ? "Softmax" : "Relu", {StrCat(i)}, {StrCat(i + 1)});
  }
  chain.Output(StrCat(kNodes));
  v1::PlanFusionRequest one = RequestFor(chain.proto(), v1::PLAN_MODE_PLAN_ONLY);
  (*one.mutable_options()->mutable_dim_bindings())["rows"] = 1;
  EXPECT_GT(caller_->Plan(one).ByteSizeLong(), 20 << 10);
  std::atomic<int64_t> rows{2};
  const Attack attack = [&](const Attacked& attacked) {
    const size_t said = daemon_->output().size();
    LeaveUnread(
        attacked.address, [&] { return ClosedForUnread(said); },
        [&](RawHttp2& connection, uint32_t stream) {
          v1::PlanFusionRequest request = one;
          (*request.mutable_options()->mutable_dim_bindings())["rows"] = rows++;
          connection.Call(stream, kPlan);
          connection.Message(stream, request.SerializeAsString(), seconds(1));
          std::this_thread::sleep_for(kPace);  // or planning would be too much
        });
    EXPECT_TRUE(ClosedForUnread(said));
  };
  Under(attack, /*comparable=*/false);
  RecordProperty("unread_plans", StrCat(rows.load()));
  unread_.clear();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") <= 1; }));
}

TEST_F(HostileTest, AnswersThatAreReadSlowlyArriveWhole) {
  constexpr int kConnections = 64;
  constexpr size_t kAtOnce = 8 << 10;  // a few hundred KB/s each
  const std::string request = LargeStored().SerializeAsString();
  std::atomic<int64_t> read{0}, ended{0};
  const Attack attack = [&](const Attacked& attacked) {
    struct Reader {
      std::unique_ptr<RawHttp2> connection;
      uint32_t stream = 1;
      bool calls = false;
    };
    std::vector<Reader> all(kConnections);
    for (Reader& reader : all) {
      reader.connection = std::make_unique<RawHttp2>(attacked.address);
      reader.connection->Hello(/*answer_window=*/64 << 10);
    }
    Together([&](int i) {
      const auto attacker = static_cast<size_t>(i);
      for (size_t own = attacker; own < all.size(); own += kAttackers) {
        Reader& reader = all[own];
        const int64_t over = reader.connection->ended();
        if (!reader.calls) {
          reader.connection->Call(reader.stream, kStored);
          reader.calls = reader.connection->Message(reader.stream, request, milliseconds(20)) > 0;
        }
        EXPECT_TRUE(reader.connection->ReadSlowly(reader.stream, kAtOnce)) << "it does read";
        if (reader.connection->ended() > over) {
          reader.stream += 2;
          reader.calls = false;
        }
      }
    });
    for (const Reader& reader : all) {
      read += reader.connection->answered_bytes();
      ended += reader.connection->ended();
    }
  };
  Under(attack, /*comparable=*/false);
  RecordProperty("read_mib", StrCat(read >> 20));
  RecordProperty("answers", StrCat(ended.load()));
  EXPECT_GT(ended, 0) << "answers arrive whole";
  EXPECT_EQ(Metric("fusion_connections_closed_total"), 0) << "whoever reads stays";
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") <= 1; }));
}

TEST_F(HostileTest, CallersOfASocketFilePayForThemselves) {
  const std::string file = StrCat("unix:", dir_.path("s"));
  Begin({"--listen", "127.0.0.1:0", "--listen", file});
  Neighbour beside(file, dir_.Write("known-beside", KnownRequest().SerializeAsString()));
  beside.SetCalling(false);
  std::atomic<int64_t> calls{0};
  // To a server of which only PlanFusion answers, and over TCP: as many small calls.
  Under([&](const Attacked& attacked) {
    beside.SetCalling(!attacked.bare);
    unread_ = std::vector<std::list<RawHttp2>>(kAttackers);
    const Nanoseconds end = Now() + kTime;
    Each([&](int attacker) {
      auto& own = unread_[static_cast<size_t>(attacker)];
      while (Now() < end) {
        RawHttp2& one = own.emplace_back(attacked.bare ? attacked.address : file);
        one.Hello(/*answer_window=*/0);
        for (uint32_t stream = 1; stream < 2000; stream += 2) {
          if (!one.Call(stream, attacked.bare ? kPlan : kCapabilities) ||
              !one.Unasked(stream, "")) {
            break;
          }
          if (!attacked.bare) ++calls;
        }
        std::this_thread::sleep_for(kPace);
      }
    });
    beside.SetCalling(false);
  });
  RecordProperty("unread_calls", StrCat(calls.load()));
  EXPECT_GT(calls, 4096) << "or nothing was tried";
  EXPECT_THAT(daemon_->output(),
              testing::ContainsRegex("\"event\":\"connection_closed\",\"peer\":\"unix:uid=[^}]*"
                                     "\"calls_not_ended\":"));
  EXPECT_EQ(neighbour_->retries(), 0) << "who comes over TCP does not notice";
  EXPECT_THAT(beside.failures(), testing::IsEmpty());
  EXPECT_EQ(beside.retries(), 0) << "nor do others on the same socket file";
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") <= 2; }));
  v1::PlanFusionResponse response;
  EXPECT_TRUE(FusionCaller(file).Plan(KnownRequest(), &response, seconds(30)).ok());
}

TEST_F(HostileTest, CallsThatNobodyReadsEndAtTheLimitOfEveryCall) {
  Begin({"--call-seconds", "6"});  // time enough to compile what is known
  RawHttp2 reader(daemon_->address());
  reader.Hello(/*answer_window=*/0);
  const std::string known = KnownRequest().SerializeAsString();
  for (uint32_t stream = 1; stream < 9; stream += 2) {
    reader.Call(stream, kPlan);
    EXPECT_GT(reader.Message(stream, known, kPatience), 0u);
  }
  EXPECT_TRUE(daemon_->WaitForOutput("\"event\":\"late_calls_ended\""));
  EXPECT_TRUE(reader.Read()) << "its connection lives";
}

TEST_F(HostileTest, WholeCallsTakenBackAtOnceEndTheConnection) {
  v1::PlanFusionRequest request = RequestFor(LinearReluModel(9).proto(), v1::PLAN_MODE_PLAN_ONLY);
  const std::string small = request.SerializeAsString();
  Under([&](const Attacked& attacked) {
    Together([&](int) {
      RawHttp2 one(attacked.address);
      if (!one.Hello()) return;
      const Nanoseconds end = Now() + kTime;
      for (uint32_t stream = 1; Now() < end; stream += 2) {
        if (!one.Call(stream, kPlan) || one.Message(stream, small, kPatience) == 0 ||
            !one.Reset(stream)) {
          return;
        }
      }
    });
  });
  // For so many calls in a second, or where the machine is too slow for those, for their memory.
  EXPECT_GT(Metric("fusion_connections_closed_total"), 0);
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") <= 1; }));
}

TEST_F(HostileTest, CallsTakenBackAtOnce) {
  std::atomic<int64_t> calls{0};
  Under([&](const Attacked& attacked) {
    Together([&](int) {
      RawHttp2 one(attacked.address);
      if (!one.Hello()) return;
      const Nanoseconds end = Now() + kTime / 3;
      for (uint32_t stream = 1; Now() < end; stream += 2) {
        if (!one.Call(stream, kPlan) || !one.Reset(stream) || !one.Read()) return;
        ++calls;
      }
    });
  });
  RecordProperty("taken_back", StrCat(calls.load()));
  EXPECT_GT(Metric("fusion_connections_closed_total"), 0);
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") <= 1; }));
}

}  // namespace
}  // namespace fusion
