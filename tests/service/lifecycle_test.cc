// How a real fusiond is checked, watched, reloaded and stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <regex>

#include "core/base/files/file.h"
#include "core/base/files/unique_fd.h"
#include "core/base/threads/mutex.h"
#include "core/compile/worker_process.h"
#include "tests/service/run_program.h"
#include "tests/service/server_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ConfigFileTest, EveryBadLineIsNamedWithItsNumber) {
  ScratchDir dir;
  std::string file = dir.Write("fusiond.conf",
                               "# a comment\n"
                               "workers = \"many\"\n"
                               "listen = [\"127.0.0.1:0\", \"nowhere\"]\n"
                               "\n"
                               "store-limt = 4\n"
                               "  log-level = \"loud\"\n"
                               "drain-seconds = 1\n"
                               "compiler = \"/usr/bin/tcc\"\n");
  ProgramEnd end = TestDaemon::RunToEnd(FUSIOND, {"--config", file});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output, AllOf(HasSubstr(file + ":2: --workers"), HasSubstr(file + ":3: --listen"),
                                HasSubstr(file + ":5: unknown name store-limt"),
                                HasSubstr(file + ":6: --log-level"), Not(HasSubstr(":7:"))));
  file = dir.Write("fusiond.conf", "\ncompiler = \"/usr/bin/tcc\"\n");
  EXPECT_THAT(TestDaemon::RunToEnd(FUSIOND, {"--config", file}).output,
              HasSubstr(file + ":2: --compiler: \"/usr/bin/tcc\" is not one of"));
  // What only a start finds out; and a flag goes before the file.
  file = dir.Write("fusiond.conf", "listen = \"127.0.0.1:0\"\nrules-file = \"/nowhere\"\n");
  EXPECT_THAT(TestDaemon::RunToEnd(FUSIOND, {"--config", file}).output,
              HasSubstr(file + ":2: --rules-file: "));
  EXPECT_THAT(
      TestDaemon::RunToEnd(FUSIOND, {"--config", file, "--rules-file", "/elsewhere"}).output,
      AllOf(HasSubstr("fusiond: --rules-file: "), HasSubstr("/elsewhere")));
}

TEST(CheckConfigTest, SaysWhetherAStartWouldWorkAndStartsNothing) {
  ScratchDir dir;
  std::string tokens =
      dir.Write("tokens", "tokens { name: 'a' sha256: '" + std::string(64, '0') + "' }\n");
  std::vector<std::string> args = {"--check-config",  "--listen", "127.0.0.1:0", "--store",
                                   dir.path("store"), "--tokens", tokens};
  ProgramEnd end = TestDaemon::RunToEnd(FUSIOND, args);
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_THAT(end.output, AllOf(HasSubstr("1 tokens, 0 identities"), HasSubstr("compiler g++"),
                                HasSubstr("a start would work"), Not(HasSubstr("\"event\""))));
  EXPECT_FALSE(std::filesystem::exists(dir.path("store")));

  dir.Write("tokens", "tokens { name: 'a' }\n\nidentities { tenant: 'b' }\n");
  std::string file = dir.Write(
      "fusiond.conf", StrCat("listen = \"0.0.0.0:0\"\ntokens = \"", tokens,
                             "\"\nscratch = \"/nowhere\"\nstore = \"", tokens, "/below\"\n"));
  end = TestDaemon::RunToEnd(FUSIOND, {"--check-config", "--config", file});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output,
              AllOf(HasSubstr(file + ":1: --listen: 0.0.0.0:0"), HasSubstr(file + ":2: --tokens: "),
                    HasSubstr(tokens + ":1: tokens[0]"), HasSubstr(tokens + ":3: identities[0]"),
                    HasSubstr(file + ":3: --scratch: "), HasSubstr("ok    compiler g++"),
                    HasSubstr(file + ":4: --store: "), HasSubstr("a start would not work")));
}

// Every flag and every entry of every file, not the first that is wrong.
TEST(CheckConfigTest, SaysEverythingThatIsWrongAtOnce) {
  ScratchDir dir;
  const std::string rules = dir.Write(
      "rules.textproto",
      "rules { name: 'a' pattern { nodes { id: 'x' ops: 'NoSuchOp' } } bias { factor: 0.9 } }\n"
      "rules { name: 'b' pattern { nodes { id: 'x' ops: 'Relu' } } bias { factor: 0.9 } }\n"
      "rules { name: 'b' pattern { nodes { id: 'x' ops: 'Relu' } } bias { factor: 0.9 } }\n"
      "rules { name: 'c' }\n");
  const std::string kernels =
      dir.Write("kernels.textproto", "kernels { name: 'k' }\nkernels { name: 'l' }\n");
  const ProgramEnd end =
      TestDaemon::RunToEnd(FUSIOND, {"--check-config", "--listen", "127.0.0.1:0", "--rules-file",
                                     rules, "--kernels", kernels, "--no-such-flag", "--workers",
                                     "0", "--log-level", "loud", "--tls-key", "/none"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output,
              AllOf(HasSubstr("--no-such-flag"), HasSubstr("--workers"), HasSubstr("--log-level"),
                    HasSubstr("--tls-key"), HasSubstr(rules + ":1: "), HasSubstr(rules + ":3: "),
                    HasSubstr(rules + ":4: "), HasSubstr(kernels + ":1: kernels[0] \"k\""),
                    HasSubstr(kernels + ":2: kernels[1] \"l\"")));
  EXPECT_THAT(end.output, AllOf(Not(HasSubstr(rules + ":2: ")), HasSubstr("ok    --listen"),
                                HasSubstr("a start would not work")));
}

TEST(CheckConfigTest, WhatARunningServerHasIsBusyAndNotWrong) {
  ScratchDir dir;
  const std::string socket = dir.path("socket");
  auto running = TestDaemon::Start(FUSIOND, {"--store", dir.path("store"), "--listen",
                                             "127.0.0.1:0", "--listen", "unix:" + socket})
                     .value();
  std::vector<std::string> args = {"--check-config", "--store",          dir.path("store"),
                                   "--listen",       running->address(), "--listen",
                                   "unix:" + socket, "--admin",          running->admin_address()};
  ProgramEnd end = TestDaemon::RunToEnd(FUSIOND, args);
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_THAT(end.output,
              AllOf(HasSubstr(StrCat("busy  --listen: cannot listen on ", running->address())),
                    HasSubstr(StrCat("busy  --listen: cannot listen on unix:", socket)),
                    HasSubstr(StrCat("busy  --admin: cannot listen on ", running->admin_address())),
                    HasSubstr("busy  --store: store"), HasSubstr("ok    --sandbox auto: "),
                    HasSubstr("a start would work once nobody uses what is busy")));
  running->Stop();
  end = TestDaemon::RunToEnd(FUSIOND, args);
  EXPECT_THAT(end.output, AllOf(HasSubstr("\na start would work\n"), Not(HasSubstr("busy"))));
  EXPECT_FALSE(std::filesystem::exists(socket)) << "a look leaves nothing";
}

TEST(CheckConfigTest, WhatAStartWouldRefuseIsWrong) {
  ProgramEnd end = TestDaemon::RunToEnd(
      FUSIOND, {"--check-config", "--listen", "192.0.2.1:0", "--listen", "unix:/nowhere/socket",
                "--admin", "0.0.0.0:0", "--allow-plaintext"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output,
              AllOf(HasSubstr("bad   --listen: cannot listen on 192.0.2.1:0: "),
                    HasSubstr("bad   --listen: cannot listen on unix:/nowhere/socket: "),
                    HasSubstr("ok    --admin 0.0.0.0:0: HTTP, for everybody"),
                    HasSubstr("a start would not work")));
  end = TestDaemon::RunToEnd(
      FUSIOND, {"--check-config", "--listen", "127.0.0.1:45999", "--admin", "127.0.0.1:45999"});
  EXPECT_THAT(end.output, HasSubstr("bad   --admin: 127.0.0.1:45999 is given twice"));
  const std::vector<std::string> open = {"--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"};
  end = TestDaemon::RunToEnd(FUSIOND, open);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.output, HasSubstr("--admin: 0.0.0.0:0: other machines can connect there"));
}

// A service manager's end of $NOTIFY_SOCKET.
class NoticeSocket {
 public:
  explicit NoticeSocket(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    FUSION_CHECK(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0,
                 "the socket is fresh");
    timeval limit{.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  // Empty if none comes within a minute.
  std::string Next() const {
    char text[256];
    const ssize_t bytes = recv(fd_.get(), text, sizeof(text), 0);
    return bytes <= 0 ? "" : std::string(text, static_cast<size_t>(bytes));
  }

 private:
  UniqueFd fd_;
};

TEST(NoticeTest, TheServiceManagerIsToldOfStartLifeAndEnd) {
  ScratchDir dir;
  NoticeSocket socket(dir.path("notify"));
  TestProcess process({"/usr/bin/env", "NOTIFY_SOCKET=" + dir.path("notify"),
                       "WATCHDOG_USEC=100000", FUSIOND, "--exit-with-parent", "--listen",
                       "127.0.0.1:0", "--drain-seconds", "0"});
  EXPECT_THAT(socket.Next(), HasSubstr("READY=1"));
  EXPECT_EQ(socket.Next(), "WATCHDOG=1");
  EXPECT_EQ(socket.Next(), "WATCHDOG=1");
  kill(process.pid(), SIGTERM);
  std::string last;
  do {
    last = socket.Next();
  } while (last == "WATCHDOG=1");
  EXPECT_THAT(last, HasSubstr("STOPPING=1"));
  EXPECT_EQ(process.Wait(), 0);
}

TEST(StopTest, AnotherSigintEndsTheDrainAndAnotherSigtermDoesNot) {
  auto daemon = TestDaemon::Start(FUSIOND, {"--drain-seconds", "3600"}).value();
  daemon->Send(SIGTERM);
  ASSERT_TRUE(daemon->WaitForOutput("\"event\":\"stopping\""));
  daemon->Send(SIGTERM);
  daemon->Send(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return HttpGet(daemon->admin_address(), "/readyz").code == 503; }));
  EXPECT_EQ(HttpGet(daemon->admin_address(), "/healthz").code, 200) << "it drains";
  daemon->Send(SIGINT);
  ProgramEnd end = daemon->Wait();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.output, HasSubstr("stopping_at_once"));
}

// What a balancer such as HAProxy does: calls in turn to the servers whose /readyz said so when it
// looked last, and no second try.
class Balancer {
 public:
  explicit Balancer(const std::vector<const TestDaemon*>& daemons) {
    for (const TestDaemon* daemon : daemons) {
      Server& server = *servers_.emplace_back(std::make_unique<Server>());
      server.admin = daemon->admin_address();
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
      server.stub = v1::FusionService::NewStub(grpc::CreateCustomChannel(
          daemon->address(), grpc::InsecureChannelCredentials(), arguments));
    }
    watcher_ = std::thread([this] {
      while (!stop_) {
        for (auto& server : servers_) {
          server->ready = HttpGet(server->admin, "/readyz").code == 200;
        }
        std::this_thread::sleep_for(kInterval);
      }
    });
  }
  ~Balancer() {
    stop_ = true;
    watcher_.join();
  }

  // One call to a server that is ready; as a stream to its end.
  grpc::Status Plan(const v1::PlanFusionRequest& request, bool stream) {
    const size_t first = turn_.fetch_add(1);
    for (size_t i = 0; i < servers_.size(); ++i) {
      Server& server = *servers_[(first + i) % servers_.size()];
      if (!server.ready) continue;
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
      v1::PlanFusionResponse response;
      grpc::Status status;
      if (stream) {
        auto reader = server.stub->PlanFusionStream(&context, request);
        for (v1::PlanFusionEvent event; reader->Read(&event);) continue;
        status = reader->Finish();
      } else {
        status = server.stub->PlanFusion(&context, request, &response);
      }
      server.answered += status.ok() ? 1 : 0;
      return status;
    }
    return {grpc::StatusCode::UNAVAILABLE, "no server is ready"};
  }
  int64_t answered(size_t server) const { return servers_[server]->answered; }

 private:
  static constexpr auto kInterval = std::chrono::milliseconds(100);
  struct Server {
    std::string admin;
    std::unique_ptr<v1::FusionService::Stub> stub;
    std::atomic<bool> ready{true};
    std::atomic<int64_t> answered{0};
  };
  std::vector<std::unique_ptr<Server>> servers_;
  std::atomic<size_t> turn_{0};
  std::atomic<bool> stop_{false};
  std::thread watcher_;
};

// The failures of calls under load while the first of two servers is stopped.
std::vector<std::string> FailuresDuringAStop(const std::string& drain_seconds) {
  const std::vector<std::string> args = {"--drain-seconds", drain_seconds};
  auto first = TestDaemon::Start(FUSIOND, args).value();
  auto second = TestDaemon::Start(FUSIOND, args).value();
  Balancer balancer({first.get(), second.get()});
  // Some known, some that are compiled while the server is stopped, as an answer or as a stream.
  const v1::PlanFusionRequest known =
      RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_PLAN_ONLY);
  std::atomic<int64_t> next_rows{100};
  std::atomic<bool> enough{false};
  Mutex mutex;
  std::vector<std::string> failures;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      while (!enough) {
        const bool is_new = i >= 2;
        grpc::Status status = balancer.Plan(
            is_new ? RequestFor(LinearReluModel(next_rows++).proto()) : known, /*stream=*/i == 3);
        if (status.ok()) continue;
        MutexLock lock(&mutex);
        failures.push_back(status.error_message());
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return balancer.answered(0) > 100 && balancer.answered(1) > 100; }));
  EXPECT_EQ(first->Stop().exit_code, 0);
  const int64_t before = balancer.answered(1);
  EXPECT_TRUE(Eventually([&] { return balancer.answered(1) > before + 500; }));
  enough = true;
  for (std::thread& caller : callers) caller.join();
  return failures;
}

TEST(DrainTest, BehindABalancerNoCallFailsWhenAServerIsStopped) {
  EXPECT_THAT(FailuresDuringAStop("2"), testing::IsEmpty());
}

TEST(DrainTest, WithoutTheDrainCallsWouldFail) {
  EXPECT_THAT(FailuresDuringAStop("0"), Not(testing::IsEmpty())) << "else the test above is none";
}

TEST(UnitFileTest, SystemdFindsLittleExposed) {
  const std::string tool = "/usr/bin/systemd-analyze";
  if (access(tool.c_str(), X_OK) != 0) GTEST_SKIP() << "systemd is not installed";
  ProgramResult result = RunProgram({tool, "security", "--offline=yes", "--no-pager",
                                     StrCat(FUSION_SOURCE_DIR, "/deploy/fusiond.service")});
  std::smatch found;
  const std::string text = result.out + result.err;
  ASSERT_TRUE(std::regex_search(text, found, std::regex("exposure level for [^:]*: ([0-9.]+)")))
      << text;
  EXPECT_LE(std::stod(found[1]), 2.0) << text;
}

TEST(UnitFileTest, AWorkerMeetsItsOwnLimitOfThreadsFirst) {
  std::string unit =
      ReadFile(StrCat(FUSION_SOURCE_DIR, "/deploy/fusiond.service"), 1 << 20).value();
  std::smatch found;
  ASSERT_TRUE(std::regex_search(unit, found, std::regex("\nTasksMax=([0-9]+)\n")));
  EXPECT_GE(std::stoll(found[1]), 16 * WorkerProcessOptions().max_threads);
}

TEST(UnitFileTest, AWorkerThatTakesAllMemoryDoesNotStopTheService) {
  EXPECT_THAT(ReadFile(StrCat(FUSION_SOURCE_DIR, "/deploy/fusiond.service"), 1 << 20).value(),
              HasSubstr("\nOOMPolicy=continue\n"));
}

TEST(UnitFileTest, WorkersMaySandboxAndPinThemselves) {
  std::string unit =
      ReadFile(StrCat(FUSION_SOURCE_DIR, "/deploy/fusiond.service"), 1 << 20).value();
  EXPECT_THAT(unit, HasSubstr("SystemCallFilter=seccomp landlock_create_ruleset landlock_add_rule "
                              "landlock_restrict_self\n"));
  EXPECT_THAT(unit, Not(HasSubstr("=~@resources")));
  EXPECT_THAT(unit, Not(HasSubstr("\nMemoryDenyWriteExecute=yes")));
}

}  // namespace
}  // namespace fusion
