#include "tests/support/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <thread>

namespace fusion {
namespace {

constexpr auto kSlice = std::chrono::milliseconds(5);
constexpr int kSlices = 6000;

// The text value of a member in a line of the log.
std::string Member(const std::string& text, const std::string& name) {
  std::string mark = StrCat("\"", name, "\":\"");
  size_t begin = text.find(mark);
  if (begin == std::string::npos) return "";
  begin += mark.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

bool Has(const std::vector<std::string>& args, const std::string& flag) {
  return std::find(args.begin(), args.end(), flag) != args.end();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TestDaemon>> TestDaemon::Start(const std::string& program,
                                                              std::vector<std::string> args) {
  bool configured = Has(args, "--config");
  std::unique_ptr<TestDaemon> daemon(new TestDaemon);
  if (!configured && !Has(args, "--listen")) {
    args.insert(args.end(), {"--listen", "127.0.0.1:0", "--listen",
                             StrCat("unix:", daemon->dir_.path("socket"))});
  }
  if (!configured && !Has(args, "--admin")) args.insert(args.end(), {"--admin", "127.0.0.1:0"});
  if (!configured && !Has(args, "--drain-seconds")) {
    args.insert(args.end(), {"--drain-seconds", "0"});
  }
  RETURN_IF_ERROR(daemon->Spawn(program, args));
  if (!daemon->WaitForOutput("\"event\":\"listening\"")) {
    return Unavailable("fusiond did not start: ", daemon->output());
  }
  std::string log = daemon->output();
  std::string line = log.substr(log.find("\"event\":\"listening\""));
  const std::string addresses = Member(line, "addresses");
  daemon->address_ = addresses.substr(0, addresses.find(' '));
  for (std::string_view address : StrSplit(addresses, ' ')) {
    if (address.starts_with("unix:") && daemon->local_.empty()) daemon->local_ = address;
  }
  daemon->admin_ = Member(line, "admin");
  return daemon;
}

ProgramEnd TestDaemon::RunToEnd(const std::string& program, const std::vector<std::string>& args) {
  TestDaemon daemon;
  absl::Status spawned = daemon.Spawn(program, args);
  FUSION_CHECK(spawned.ok(), "the program can be started");
  return daemon.Wait();
}

absl::Status TestDaemon::Spawn(const std::string& program, const std::vector<std::string>& args) {
  std::vector<std::string> words = {program, "--exit-with-parent"};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  std::string log = dir_.path("log");
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  int error = posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Unavailable("starting ", program, ": error ", error);
  return absl::OkStatus();
}

TestDaemon::~TestDaemon() {
  if (pid_ < 0 || Ended()) return;
  Send(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool TestDaemon::Ended() {
  if (wait_status_ >= 0) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) wait_status_ = status;
  return wait_status_ >= 0;
}

std::string TestDaemon::output() const {
  return ReadFile(dir_.path("log"), int64_t{64} << 20).value_or("");
}

bool TestDaemon::WaitForOutput(const std::string& text) {
  for (int i = 0; i < kSlices; ++i) {
    bool ended = Ended();  // first, so that its last words are seen
    if (output().find(text) != std::string::npos) return true;
    if (ended) return false;
    std::this_thread::sleep_for(kSlice);
  }
  return false;
}

void TestDaemon::Send(int signal) const {
  if (wait_status_ < 0) kill(pid_, signal);
}

ProgramEnd TestDaemon::Wait() {
  for (int i = 0; i < 2 * kSlices && !Ended(); ++i) std::this_thread::sleep_for(kSlice);
  if (!Ended()) {
    Send(SIGKILL);
    waitpid(pid_, &wait_status_, 0);
  }
  ProgramEnd end{.exit_code = -1, .signal = 0, .output = output()};
  if (WIFEXITED(wait_status_)) end.exit_code = WEXITSTATUS(wait_status_);
  if (WIFSIGNALED(wait_status_)) end.signal = WTERMSIG(wait_status_);
  return end;
}

ProgramEnd TestDaemon::Stop() {
  Send(SIGTERM);
  return Wait();
}

}  // namespace fusion
