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

#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
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

  dir.Write("tokens", "tokens { name: 'a' }\n");
  std::string file = dir.Write(
      "fusiond.conf", StrCat("listen = \"0.0.0.0:0\"\ntokens = \"", tokens,
                             "\"\nscratch = \"/nowhere\"\nstore = \"", tokens, "/below\"\n"));
  end = TestDaemon::RunToEnd(FUSIOND, {"--check-config", "--config", file});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output,
              AllOf(HasSubstr(file + ":1: --listen: 0.0.0.0:0"), HasSubstr(file + ":2: --tokens: "),
                    HasSubstr(tokens + ":1: tokens[0]"), HasSubstr(file + ":3: --scratch: "),
                    HasSubstr(file + ":4: --store: "), HasSubstr("a start would not work")));
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
  EXPECT_EQ(HttpGet(daemon->admin_address(), "/readyz").code, 503);
  EXPECT_EQ(HttpGet(daemon->admin_address(), "/healthz").code, 200) << "it drains";
  daemon->Send(SIGINT);
  ProgramEnd end = daemon->Wait();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.output, HasSubstr("stopping_at_once"));
}

// Calls in turn to all addresses that say that they serve, without a second try.
std::shared_ptr<grpc::Channel> BalancedChannel(const std::vector<std::string>& addresses) {
  grpc::ChannelArguments arguments;
  arguments.SetLoadBalancingPolicyName("round_robin");
  arguments.SetServiceConfigJSON(
      R"({"healthCheckConfig":{"serviceName":"fusion.v1.FusionService"}})");
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(StrCat("ipv4:", StrJoin(addresses, ",")),
                                   grpc::InsecureChannelCredentials(), arguments);
}

TEST(DrainTest, BehindABalancerNoCallFailsWhenAServerIsStopped) {
  const std::vector<std::string> args = {"--drain-seconds", "1"};
  auto first = TestDaemon::Start(FUSIOND, args).value();
  auto second = TestDaemon::Start(FUSIOND, args).value();
  std::shared_ptr<grpc::Channel> channel = BalancedChannel({first->address(), second->address()});
  ASSERT_TRUE(
      channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30)));
  auto stub = v1::FusionService::NewStub(channel);
  v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_PLAN_ONLY);
  std::atomic<bool> enough{false};
  std::atomic<int64_t> good{0};
  Mutex mutex;
  std::vector<std::string> failures;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (!enough) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
        v1::PlanFusionResponse response;
        grpc::Status status = stub->PlanFusion(&context, request, &response);
        if (status.ok()) {
          ++good;
          continue;
        }
        MutexLock lock(&mutex);
        failures.push_back(
            StrCat(static_cast<int>(status.error_code()), ": ", status.error_message()));
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return good > 200; }));
  EXPECT_THAT(first->output(), HasSubstr("\"method\":\"PlanFusion\"")) << "both are called";
  EXPECT_THAT(second->output(), HasSubstr("\"method\":\"PlanFusion\""));
  ProgramEnd end = first->Stop();
  const int64_t at_end = good;
  EXPECT_TRUE(Eventually([&] { return good > at_end + 200; })) << "the other one goes on";
  enough = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(end.exit_code, 0);
  MutexLock lock(&mutex);
  EXPECT_TRUE(failures.empty()) << failures.size() << " of " << good << ", first: " << failures[0];
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
