// What other users of a machine can do to a real fusiond and to those who trust it: nothing.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "client/admin_client.h"
#include "core/base/files/file.h"
#include "core/wire/kernel.h"
#include "tests/service/run_program.h"
#include "tests/service/server_fixture.h"
#include "tests/support/archive_frames.h"
#include "tests/support/test_certificates.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

constexpr const char* kSetpriv = "/usr/bin/setpriv";
constexpr const char* kOther = "65534";  // a user that owns nothing here
constexpr const char* kThird = "65533";

/// With a directory that every user of the machine may enter, and the programs in it.
class PrivilegeTest : public ServerTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    if (access(kSetpriv, X_OK) != 0) GTEST_SKIP() << "there is no " << kSetpriv;
    ASSERT_EQ(chmod(public_.path().c_str(), 0755), 0);
    for (const std::string program : {FUSIONCTL, FUSIOND}) Publish(program);
    for (const std::string name : {"fusion-worker", "fusion-exec"}) {
      Publish(fs::path(FUSIOND).parent_path() / name);
    }
    TestModel softmax;
    softmax.Input("x", {8, 64}).Node("Softmax", {"x"}, {"y"}).Output("y");
    model_ = public_.Write("model.onnx", softmax.Bytes());
    ASSERT_EQ(chmod(model_.c_str(), 0644), 0);
  }

  void Publish(const fs::path& program) {
    fs::copy_file(program, public_.path(program.filename()));
    ASSERT_EQ(chmod(public_.path(program.filename()).c_str(), 0755), 0);
  }
  static std::vector<std::string> As(const std::string& user, const std::string& group,
                                     std::vector<std::string> words) {
    words.insert(words.begin(),
                 {kSetpriv, "--reuid=" + user, "--regid=" + group, "--clear-groups"});
    return words;
  }
  // fusionctl as another user.
  ProgramResult OtherCtl(std::vector<std::string> words, const std::string& server) const {
    words.insert(words.begin(), public_.path("fusionctl"));
    words.insert(words.end(), {"--server", server});
    return RunProgram(As(kOther, kOther, words));
  }
  static ProgramResult Ctl(std::vector<std::string> words) {
    words.insert(words.begin(), FUSIONCTL);
    return RunProgram(words);
  }
  std::string Socket() const { return StrCat("unix:", public_.path("socket")); }
  void StartForAll(std::vector<std::string> args = {}) {
    args.insert(args.end(), {"--listen", "127.0.0.1:0", "--listen", Socket(), "--socket-mode",
                             "0666", "--store", dir_.path("store")});
    Start(args);
  }
  std::string Archive() const { return dir_.path("plans.fsa"); }
  // A model is planned into the store of the server, whose archive is written then.
  void MakeArchive() {
    ASSERT_EQ(Ctl({"plan", model_, "--server", Socket()}).code, 0);
    const ProgramResult exported =
        Ctl({"store", "export", "--out", Archive(), "--server", Socket()});
    ASSERT_EQ(exported.code, 0) << exported.err;
  }
  // Every kernel of the archive changed.
  std::string Changed(const std::function<void(KernelArtifact*)>& change) const {
    std::vector<ArchivedFrame> frames = FramesOf(ReadFile(Archive(), 64 << 20).value());
    for (ArchivedFrame& frame : frames) {
      if (frame.type != 'K') continue;
      KernelArtifact kernel = DecodeArtifact(frame.payload).value();
      change(&kernel);
      frame.payload = EncodeArtifact(kernel);
    }
    return dir_.Write("changed.fsa", ArchiveOf(frames));
  }

  ScratchDir public_;
  std::string model_;
};

TEST_F(PrivilegeTest, EachCallOfAnAdministratorIsRefusedToAnotherUser) {
  StartForAll();
  MakeArchive();
  const std::string key = nlohmann::json::parse(
      Ctl({"list", "--json", "--full", "--server", Socket()}).out)["plans"][0]["plan_key"];
  fs::create_directory(public_.path("theirs"));
  ASSERT_EQ(chown(public_.path("theirs").c_str(), 65534, 65534), 0);
  const std::string archive = public_.Write("theirs.fsa", ReadFile(Archive(), 64 << 20).value());
  ASSERT_EQ(chmod(archive.c_str(), 0644), 0);
  for (const std::string& server : {Socket(), daemon_->address()}) {
    for (const std::vector<std::string>& action :
         std::vector<std::vector<std::string>>{{"stats"},
                                               {"verify"},
                                               {"compact"},
                                               {"pin", key},
                                               {"unpin", key},
                                               {"invalidate", "--all"},
                                               {"invalidate", key},
                                               {"export", "--out", public_.path("theirs/none")},
                                               {"import", "--from", archive}}) {
      std::vector<std::string> words = {"store"};
      words.insert(words.end(), action.begin(), action.end());
      const ProgramResult refused = OtherCtl(words, server);
      EXPECT_EQ(refused.code, 4) << action[0];
      EXPECT_THAT(refused.err, AllOf(HasSubstr("this call needs the role admin"),
                                     HasSubstr("has plan, report"), HasSubstr("--tokens")))
          << action[0];
    }
    // What everybody may do he may, too.
    EXPECT_EQ(OtherCtl({"plan", model_}, server).code, 0);
    EXPECT_THAT(OtherCtl({"capabilities"}, server).out,
                HasSubstr("for plan, report, trusted-report\n"));
  }
  EXPECT_THAT(daemon_->output(), HasSubstr("\"event\":\"admin\",\"identity\":\"\""))
      << "each left a line";
  const ProgramResult stats = Ctl({"store", "stats", "--json", "--server", Socket()});
  ASSERT_EQ(stats.code, 0) << stats.err;
  EXPECT_EQ(nlohmann::json::parse(stats.out)["tiers"][1]["plans"], 1) << "nothing was forgotten";
}

// The first line of the answer.
std::string AskedBy(const std::string& method, const std::string& address,
                    const std::string& path) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  const size_t colon = address.rfind(':');
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string request =
      StrCat(method, " ", path, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  std::string line(100, '\0');
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0 ||
      send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return "";
  }
  const ssize_t got = recv(fd.get(), line.data(), line.size(), 0);
  line.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return line.substr(0, line.find('\r'));
}

TEST_F(PrivilegeTest, TheAdminPortChangesNothing) {
  StartForAll();
  MakeArchive();
  for (const char* path : {"/metrics", "/statusz", "/healthz", "/readyz", "/compile_log/x"}) {
    for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
      EXPECT_THAT(AskedBy(method, daemon_->admin_address(), path),
                  AllOf(HasSubstr("HTTP/1.1 4"), Not(HasSubstr(" 200 "))))
          << method << " " << path;
    }
  }
  EXPECT_EQ(Status()["stores"][1]["plans"], 1);
}

TEST_F(PrivilegeTest, RootIsAdministratorOfAServerThatIsNotItsOwn) {
  ASSERT_EQ(chown(public_.path().c_str(), 65534, 65534), 0);
  TestProcess server(As(kOther, kOther,
                        {public_.path("fusiond"), "--listen", Socket(), "--socket-mode", "0666",
                         "--drain-seconds", "0", "--exit-with-parent"}));
  ASSERT_TRUE(Eventually([&] {
    return Ctl({"status", "--server", Socket()}).code == 0;
  })) << server.err();
  EXPECT_EQ(Ctl({"store", "stats", "--server", Socket()}).code, 0) << "root";
  EXPECT_EQ(OtherCtl({"store", "stats"}, Socket()).code, 0) << "the server's own user";
  const ProgramResult third = RunProgram(
      As(kThird, kThird, {public_.path("fusionctl"), "store", "stats", "--server", Socket()}));
  EXPECT_EQ(third.code, 4);
  EXPECT_THAT(third.err, HasSubstr("this call needs the role admin"));
  kill(server.pid(), SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.err();
}

TEST_F(PrivilegeTest, ASocketIsOfUseToItsGroupAndToNobodyElse) {
  Start({"--listen", "127.0.0.1:0", "--listen", Socket(), "--socket-group", kThird});
  auto as_group = [&](const std::string& group, std::vector<std::string> words) {
    words.insert(words.begin(), public_.path("fusionctl"));
    words.insert(words.end(), {"--server", Socket()});
    return RunProgram(As(kOther, group, words));
  };
  const ProgramResult planned = as_group(kThird, {"plan", model_});
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(as_group(kThird, {"store", "stats"}).err, HasSubstr("needs the role admin"));
  EXPECT_EQ(as_group(kOther, {"status"}).code, 4);
}

/// An archive in which somebody has changed something.
class PoisonedArchiveTest : public PrivilegeTest {
 protected:
  void SetUp() override {
    PrivilegeTest::SetUp();
    if (IsSkipped()) return;
    StartForAll();
    MakeArchive();
    EXPECT_EQ(daemon_->Stop().exit_code, 0);
    // A library that leaves a file as soon as somebody loads it.
    const std::string source = dir_.Write(
        "foreign.cc", StrCat("#include <fcntl.h>\n__attribute__((constructor)) static void Run() {"
                             "  creat(\"",
                             Executed(), "\", 0600); }\n"));
    const ProgramResult made =
        RunProgram({"/usr/bin/g++", "-shared", "-fPIC", "-o", dir_.path("foreign.so"), source});
    ASSERT_EQ(made.code, 0) << made.err;
    foreign_ = ReadFile(dir_.path("foreign.so"), 64 << 20).value();
  }
  std::string Executed() const { return dir_.path("executed"); }
  std::string WithForeignCode() const {
    return Changed([this](KernelArtifact* kernel) {
      kernel->binary = foreign_;
      kernel->content = Sha256(foreign_);
      kernel->check = {.verified = true, .elements = 1000};
    });
  }
  ProgramResult OfCopy(std::vector<std::string> words) const {
    words.insert(words.end(), {"--store", dir_.path("copy")});
    return Ctl(words);
  }

  std::string foreign_;
};

TEST_F(PoisonedArchiveTest, ForeignCodeIsNamedAndNeverLoaded) {
  const ProgramResult imported = OfCopy({"store", "import", "--from", WithForeignCode()});
  EXPECT_EQ(imported.code, 1);
  EXPECT_THAT(imported.out,
              AllOf(HasSubstr("imported, unverified: kernel "),
                    HasSubstr("is not what this server's compiler makes"), HasSubstr("1 refused")));
  const ProgramResult ran = OfCopy({"run", model_, "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_FALSE(fs::exists(Executed()));
  EXPECT_EQ(OfCopy({"verify", model_}).code, 0) << "what was made here is right";
  EXPECT_FALSE(fs::exists(Executed()));
  const ProgramResult checked = OfCopy({"store", "verify", "--json"});
  EXPECT_EQ(checked.code, 0) << "all that is there was made here: " << checked.out;
}

TEST_F(PoisonedArchiveTest, ASourceOfSomebodyElseIsNeverCompiled) {
  const std::string changed = Changed([this](KernelArtifact* kernel) {
    kernel->source = StrCat("#error foreign source\n", kernel->source);
    kernel->schedule = "foreign schedule";
    kernel->reference = "foreign reference";
    kernel->check = {.verified = true, .max_abs = 12345, .elements = 1000};
  });
  const ProgramResult imported = OfCopy({"store", "import", "--from", changed});
  EXPECT_EQ(imported.code, 0) << imported.out << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("1 plans made again here"));
  const ProgramResult kernels = OfCopy({"kernels", model_, "--json"});
  ASSERT_EQ(kernels.code, 0) << kernels.err;
  EXPECT_THAT(kernels.out, Not(HasSubstr("12345"))) << "nor is the check believed";
  const nlohmann::json kernel = nlohmann::json::parse(kernels.out)["kernels"][0];
  for (const char* what : {"source", "schedule", "program"}) {
    const ProgramResult shown = OfCopy({"show", kernel["key"], what});
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_THAT(shown.out, Not(HasSubstr("foreign"))) << what;
  }
}

// So that the tests above can fail.
TEST_F(PoisonedArchiveTest, WhoIsTrustedIsBelieved) {
  const TestKeyPair pair = NewEd25519();
  const SigningKey key = SigningKey::Parse("evil", pair.private_pem).value();
  std::vector<ArchivedFrame> frames;
  for (ArchivedFrame& frame : FramesOf(ReadFile(WithForeignCode(), 64 << 20).value())) {
    if (frame.type == 'K' || frame.type == 'P') {
      frames.push_back(FramesOf(SignatureFrame(key, frame.type, frame.payload))[0]);
    }
    frames.push_back(std::move(frame));
  }
  const std::string file = dir_.Write("signed.fsa", ArchiveOf(frames));
  const std::string trusted = dir_.Write("evil.pem", pair.public_pem);
  const ProgramResult imported =
      OfCopy({"store", "import", "--from", file, "--import-key", trusted});
  EXPECT_EQ(imported.code, 0) << imported.out << imported.err;
  OfCopy({"run", model_, "--json"});
  EXPECT_TRUE(fs::exists(Executed()));
}

/// What others can write, a server does not begin with.
class PermissionsTest : public testing::Test {
 protected:
  static ProgramEnd Run(std::vector<std::string> args) {
    args.insert(args.end(), {"--listen", "127.0.0.1:0"});
    return TestDaemon::RunToEnd(FUSIOND, args);
  }
  static void Open(const std::string& path) {
    ASSERT_EQ(chmod(path.c_str(), fs::is_directory(path) ? 0777 : 0666), 0);
  }
  ScratchDir dir_;
};

TEST_F(PermissionsTest, EachFileThatOthersCanWriteIsNamedAndRefused) {
  const TestKeyPair pair = NewEd25519();
  TestCa ca("a CA");
  const TestIdentity identity = ca.Issue("server", "DNS:localhost");
  const std::string certificate = dir_.Write("server.crt", identity.certificate);
  const std::string key = dir_.Write("server.key", identity.key);
  const std::string clients = dir_.Write("clients.crt", ca.certificate());
  fs::create_directory(dir_.path("store"));
  fs::copy(StrCat(FUSION_SOURCE_DIR, "/deploy/kernels"), dir_.path("kernels"));
  struct Case {
    std::vector<std::string> args;
    std::string path;
  };
  for (const Case& c : std::vector<Case>{
           {{"--store", dir_.path("store")}, dir_.path("store")},
           {{"--tokens", dir_.Write("tokens", "")}, dir_.path("tokens")},
           {{"--config", dir_.Write("fusiond.conf", "workers = 1\n")}, dir_.path("fusiond.conf")},
           {{"--signing-key", dir_.Write("a.pem", pair.private_pem)}, dir_.path("a.pem")},
           {{"--import-key", dir_.Write("b.pem", pair.public_pem)}, dir_.path("b.pem")},
           {{"--rules-file", dir_.Write("rules", "")}, dir_.path("rules")},
           {{"--kernels", dir_.path("kernels")}, dir_.path("kernels")},
           {{"--tls-cert", certificate, "--tls-key", key}, certificate},
           {{"--tls-key", key, "--tls-cert", certificate}, key},
           {{"--tls-client-ca", clients, "--tls-cert", certificate, "--tls-key", key}, clients}}) {
    Open(c.path);
    const ProgramEnd end = Run(c.args);
    EXPECT_EQ(end.exit_code, 1) << c.path;
    EXPECT_THAT(end.output, AllOf(HasSubstr(StrCat("fusiond: ", c.args[0], ": \"", c.path,
                                                   "\" can be written by "
                                                   "everybody (mode 0")),
                                  HasSubstr("--insecure-permissions")));
    std::vector<std::string> checked = c.args;
    checked.emplace_back("--check-config");
    EXPECT_THAT(Run(checked).output, HasSubstr(StrCat("bad   ", c.args[0], ": \"", c.path)));
    std::vector<std::string> insists = c.args;
    insists.emplace_back("--insecure-permissions");
    auto daemon = TestDaemon::Start(FUSIOND, insists);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    EXPECT_THAT((*daemon)->output(), HasSubstr("\"event\":\"insecure_permissions\""));
    ASSERT_EQ(chmod(c.path.c_str(), fs::is_directory(c.path) ? 0700 : 0600), 0);
  }
}

TEST_F(PermissionsTest, SoIsWhatLiesInTheStoreAndWhatItLiesIn) {
  fs::create_directory(dir_.path("above"));
  const std::string store = dir_.path("above/store");
  const std::vector<std::string> args = {"--store", store};
  ASSERT_EQ(TestDaemon::Start(FUSIOND, args).value()->Stop().exit_code, 0);
  Open(store + "/db/CURRENT");
  EXPECT_THAT(Run(args).output, HasSubstr(store + "/db/CURRENT\" can be written by everybody"));
  ASSERT_EQ(chmod((store + "/db/CURRENT").c_str(), 0600), 0);
  Open(dir_.path("above"));
  EXPECT_THAT(Run(args).output, HasSubstr(dir_.path("above") + "\" can be written by everybody"));
  // Whoever keeps a store with fusionctl is asked, too.
  const ProgramResult refused = RunProgram({FUSIONCTL, "store", "stats", "--store", store});
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("--insecure-permissions"));
  const ProgramResult insists =
      RunProgram({FUSIONCTL, "store", "stats", "--store", store, "--insecure-permissions"});
  EXPECT_EQ(insists.code, 0) << insists.err;
}

}  // namespace
}  // namespace fusion
