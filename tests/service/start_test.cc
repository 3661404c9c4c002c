// How fusiond starts, and how it says that it cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/base/sanitizer.h"
#include "tests/service/fusion_caller.h"
#include "tests/support/daemon.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ProgramEnd RunFusiond(const std::vector<std::string>& args) {
  return TestDaemon::RunToEnd(FUSIOND, args);
}

// Quick to fail, never in the way of another server.
std::vector<std::string> FreePort(std::vector<std::string> more) {
  more.insert(more.end(), {"--listen", "127.0.0.1:0"});
  return more;
}

std::unique_ptr<TestDaemon> Running(const std::vector<std::string>& args = {}) {
  absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND, args);
  EXPECT_TRUE(daemon.ok()) << daemon.status();
  return daemon.ok() ? *std::move(daemon) : nullptr;
}

TEST(StartTest, HelpNamesEveryFlag) {
  ProgramEnd end = RunFusiond({"--help"});
  EXPECT_EQ(end.exit_code, 0);
  for (const char* flag : {"--config",
                           "--listen",
                           "--admin",
                           "--store",
                           "--store-limit",
                           "--rules-file",
                           "--kernels",
                           "--memory-limit",
                           "--workers",
                           "--worker-memory",
                           "--compiler",
                           "--allow-compiler",
                           "--compile-queue",
                           "--compile-seconds",
                           "--sandbox",
                           "--sandbox-readable",
                           "--failure-ttl-seconds",
                           "--scratch",
                           "--log-level",
                           "--drain-seconds",
                           "--grace-seconds",
                           "--request-threads",
                           "--request-queue",
                           "--max-connections",
                           "--connection-idle-seconds",
                           "--max-request-bytes",
                           "--max-inflight-bytes",
                           "--exit-with-parent",
                           "Exit codes"}) {
    EXPECT_THAT(end.output, HasSubstr(flag));
  }
  EXPECT_EQ(RunFusiond({"--version"}).output, "fusiond 0.1.0\n");
}

TEST(StartTest, HelpFitsAndHasAnExample) {
  const ProgramEnd end = RunFusiond({"--help"});
  for (std::string_view line : StrSplit(end.output, '\n')) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(end.output, HasSubstr("Example:\n  fusiond --listen "));
}

TEST(StartTest, AFlagThatIsNoneIsAnsweredWithTheOneThatWasMeant) {
  EXPECT_THAT(RunFusiond({"--lisen", "127.0.0.1:0"}).output, HasSubstr("did you mean --listen?"));
  EXPECT_THAT(RunFusiond({"--stroe=d"}).output, HasSubstr("did you mean --store?"));
  ScratchDir dir;
  const std::string file = dir.Write("fusiond.conf", "wrokers = 3\n");
  EXPECT_THAT(RunFusiond({"--config", file}).output, HasSubstr("did you mean workers?"));
}

TEST(StartTest, BadFlagsAreNamed) {
  struct Case {
    std::vector<std::string> args;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {{"--lisen", "x"}, "--lisen"},
           {{"--workers", "many"}, "--workers"},
           {{"--workers", "0"}, "--workers"},
           {{"--store-limit", "4 parsecs"}, "--store-limit"},
           {{"--worker-memory", "10MiB"}, "got 10485760, expected 0 or at least 134217728"},
           {{"--log-level", "loud"}, "loud"},
           {{"--drain-seconds", "-1"}, "--drain-seconds"},
           {{"--max-request-bytes", "2TiB"}, "--max-request-bytes"},
           {{"--listen", "50051"}, "--listen: address \"50051\"; expected HOST:PORT"},
           {{"--listen", "127.0.0.1:http"}, "--listen: address"},
           {{"--listen", "unix:"}, "--listen: socket path"},
           {{"--listen", StrCat("unix:/", std::string(200, 'x'))}, "--listen: socket path"},
           {{"--admin", "9464"}, "--admin: address \"9464\"; expected HOST:PORT"},
           {{"--sandbox", "wine"}, "--sandbox: sandbox \"wine\"; expected one of auto, bwrap"},
           {{"--sandbox-readable", "opt"}, "--sandbox-readable: \"opt\" is no absolute path"},
           {{"--compiler", "/usr/bin/tcc"}, "--compiler: \"/usr/bin/tcc\" is not one of"},
           {{"--allow-compiler", "g++"}, "--allow-compiler: \"g++\" is no absolute path"},
       }) {
    ProgramEnd end = RunFusiond(c.args);
    EXPECT_EQ(end.exit_code, 2) << end.output;
    EXPECT_THAT(end.output, HasSubstr(c.message));
  }
}

TEST(StartTest, ABadConfigFileIsNamedWithItsKey) {
  ScratchDir dir;
  std::string file = dir.Write("fusiond.conf", "listen = \"127.0.0.1:0\"\nstore-limt = 4\n");
  ProgramEnd end = RunFusiond({"--config", file});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output, AllOf(HasSubstr("unknown name store-limt"), HasSubstr(file)));
  file = dir.Write("other.conf", "workers = \"many\"\n");
  end = RunFusiond({"--config", file});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output, AllOf(HasSubstr("workers"), HasSubstr(file)));
  end = RunFusiond({"--config", dir.path("absent.conf")});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output, HasSubstr("absent.conf"));
}

TEST(StartTest, TheExampleConfigurationWorksAndFlagsGoBeforeIt) {
  ScratchDir dir;
  absl::StatusOr<std::string> example =
      ReadFile(StrCat(FUSION_SOURCE_DIR, "/deploy/fusiond.conf"), 1 << 20);
  ASSERT_TRUE(example.ok()) << example.status();
  std::string text = *example;
  // Places that this test may use.
  for (auto [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"127.0.0.1:50051", "127.0.0.1:0"},
                                                        {"/run/fusiond", dir.path()},
                                                        {"127.0.0.1:9464", "127.0.0.1:0"},
                                                        {"/var/lib/fusiond", dir.path("store")}}) {
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  std::vector<std::string> args = {"--config",        dir.Write("fusiond.conf", text),
                                   "--drain-seconds", "0",
                                   "--memory-limit",  "1MiB"};
  if (kSanitized) args.insert(args.end(), {"--worker-memory", "0"});
  auto daemon = Running(args);
  ASSERT_NE(daemon, nullptr);
  nlohmann::json config =
      nlohmann::json::parse(HttpGet(daemon->admin_address(), "/statusz").body)["config"];
  EXPECT_EQ(config["store-limit"], int64_t{4} << 30);
  EXPECT_EQ(config["memory-limit"], 1 << 20);
  EXPECT_EQ(config["listen"].size(), 2u);
  EXPECT_EQ(config["grace-seconds"], 30);
  EXPECT_TRUE(FusionCaller(daemon->address()).Healthy());
  EXPECT_TRUE(FusionCaller(StrCat("unix:", dir.path("fusiond.sock"))).Healthy());
  EXPECT_EQ(daemon->Stop().exit_code, 0);
}

// Names of the threads of a process.
std::set<std::string> ThreadNames(pid_t pid) {
  std::set<std::string> names;
  std::error_code error;  // of a thread that ends meanwhile
  for (const auto& task :
       std::filesystem::directory_iterator(StrCat("/proc/", pid, "/task"), error)) {
    std::ifstream in(task.path() / "comm");
    std::string name;
    if (std::getline(in, name)) names.insert(name);
  }
  return names;
}

TEST(StartTest, ThreadsHaveNamesThatTheReadmeLists) {
  std::unique_ptr<TestDaemon> daemon =
      Running({"--workers", "2", "--request-threads", "2", "--admin", "127.0.0.1:0"});
  ASSERT_NE(daemon, nullptr);
  const std::set<std::string> wanted = {
      "fusiond",      "listener",     "request-0",  "request-1",    "plan-0",
      "build-0",      "compile-0",    "compile-1",  "search-0",     "call-sweeper",
      "memory-guard", "file-watcher", "admin-http", "admin-page-0", "admin-page-1"};
  // A thread names itself when it first runs.
  std::set<std::string> missing = wanted;
  for (int look = 0; look < 600 && !missing.empty(); ++look) {
    for (const std::string& name : ThreadNames(daemon->pid())) missing.erase(name);
    if (!missing.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_THAT(missing, testing::IsEmpty());
  std::ifstream in(FUSION_SOURCE_DIR "/server/README.md");
  const std::string readme{std::istreambuf_iterator<char>(in), {}};
  for (std::string name : wanted) {
    if (name == "request-1" || name == "compile-1") continue;  // "..."
    EXPECT_THAT(readme, HasSubstr(StrCat("`", name, "`"))) << name;
  }
}

TEST(StartTest, WhatIsInUseIsNamed) {
  ScratchDir dir;
  std::string socket = StrCat("unix:", dir.path("fusiond.sock"));
  auto daemon =
      Running({"--listen", "127.0.0.1:0", "--listen", socket, "--store", dir.path("store")});
  ASSERT_NE(daemon, nullptr);

  ProgramEnd port = RunFusiond({"--listen", daemon->address()});
  EXPECT_EQ(port.exit_code, 1);
  EXPECT_THAT(port.output, HasSubstr(StrCat("cannot listen on ", daemon->address(),
                                            ": Address already in use")));
  ProgramEnd path = RunFusiond({"--listen", socket});
  EXPECT_EQ(path.exit_code, 1);
  EXPECT_THAT(path.output, HasSubstr("another server answers there"));
  ProgramEnd admin = RunFusiond(FreePort({"--admin", daemon->admin_address()}));
  EXPECT_EQ(admin.exit_code, 1);
  EXPECT_THAT(admin.output, HasSubstr("--admin: cannot listen on"));
  ProgramEnd store = RunFusiond(FreePort({"--store", dir.path("store")}));
  EXPECT_EQ(store.exit_code, 1);
  EXPECT_THAT(store.output, HasSubstr(StrCat("is open already in process ", daemon->pid())));
  EXPECT_TRUE(FusionCaller(daemon->address()).Healthy()) << "the first is unharmed";
  EXPECT_TRUE(FusionCaller(socket).Healthy());
}

TEST(StartTest, WhatCannotBeUsedIsNamed) {
  ScratchDir dir;
  std::string file = dir.Write("file", "text");
  struct Case {
    std::vector<std::string> args;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {FreePort({"--scratch", "/nowhere"}), "--scratch"},
           {FreePort({"--store", file}), "--store"},
           {FreePort({"--rules-file", dir.path("none.textproto")}), "--rules-file: "},
           {FreePort(
                {"--rules-file", dir.Write("typo.textproto", "# rules\nrules {\n  nam: 'x'\n}\n")}),
            "typo.textproto:3: column "},
           {FreePort({"--rules-file",
                      dir.Write("bad.textproto",
                                "rules { name: 'x' pattern { nodes { id: 'a' ops: 'Add' } } }\n")}),
            "bad.textproto:1: rules[0] \"x\": action: missing; expected force, forbid or bias"},
           {FreePort({"--rules-file",
                      dir.Write("op.textproto",
                                "\nrules { name: 'x' pattern { nodes { id: 'a' ops: 'Fly' } } "
                                "force {} }\n")}),
            "op.textproto:2: rule \"x\": ops of node \"a\": \"Fly\" is no operator"},
           {{"--listen", "no.such.host.invalid:1"}, "no.such.host.invalid"},
           {{"--listen", StrCat("unix:", file)}, "no socket"},
       }) {
    ProgramEnd end = RunFusiond(c.args);
    EXPECT_EQ(end.exit_code, 1) << end.output;
    EXPECT_THAT(end.output, HasSubstr(c.message));
  }
  EXPECT_EQ(ReadFile(file, 100).value_or(""), "text") << "nobody's file was removed";
}

}  // namespace
}  // namespace fusion
