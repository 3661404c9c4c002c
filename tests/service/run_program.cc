#include "tests/service/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <thread>

namespace fusion {
namespace {

std::string ReadAll(const std::string& path) {
  return ReadFile(path, int64_t{256} << 20).value_or("");
}

// Files of /proc have no size.
std::string ReadProc(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  ssize_t n = fd.valid() ? read(fd.get(), text.data(), text.size()) : 0;
  text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

// Of all threads of a process: ids, each followed by a space.
std::string ReadChildren(pid_t parent) {
  std::string out;
  std::error_code error;  // the process may end meanwhile
  std::filesystem::directory_iterator task(StrCat("/proc/", parent, "/task"), error), end;
  for (; !error && task != end; task.increment(error)) {
    out += ReadProc(task->path().string() + "/children");
  }
  return out;
}

}  // namespace

TestProcess::TestProcess(const std::vector<std::string>& words) {
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, dir_.path("out").c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, 2, dir_.path("err").c_str(), O_WRONLY | O_CREAT, 0600);
  int error = posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  FUSION_CHECK(error == 0, "the program under test can be started");
}

TestProcess::~TestProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  Wait();
}

int TestProcess::Wait() {
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string TestProcess::out() const { return ReadAll(dir_.path("out")); }
std::string TestProcess::err() const { return ReadAll(dir_.path("err")); }

ProgramResult RunProgram(const std::vector<std::string>& words) {
  TestProcess process(words);
  int code = process.Wait();
  return {code, process.out(), process.err()};
}

ProgramResult RunOnTerminal(const std::vector<std::string>& words,
                            const std::vector<std::string>& environment) {
  std::vector<std::string> copies = words;
  std::vector<std::string> added = environment;
  std::vector<char*> argv, env;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  for (std::string& entry : added) env.push_back(entry.data());
  for (char** entry = environ; *entry != nullptr; ++entry) env.push_back(*entry);
  env.push_back(nullptr);
  winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
  FUSION_CHECK(pid >= 0, "a terminal for the program under test");
  if (pid == 0) {
    execve(argv[0], argv.data(), env.data());
    _exit(127);
  }
  UniqueFd fd(terminal);
  ProgramResult out;
  std::array<char, 4096> buffer;
  for (;;) {  // ends with EIO once the program has closed its side
    ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n <= 0 && errno != EINTR) break;
    if (n > 0) out.out.append(buffer.data(), static_cast<size_t>(n));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return out;
}

UniqueFd AwaitChild(pid_t parent, const std::string& name, pid_t* child) {
  while (kill(parent, 0) == 0) {
    const std::string children = ReadChildren(parent);
    for (std::string_view word : StrSplit(children, ' ')) {
      if (word.empty() || StripSpace(ReadProc(StrCat("/proc/", word, "/comm"))) != name) continue;
      *child = static_cast<pid_t>(std::stol(std::string(word)));
      return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, *child, 0)));
    }
    std::this_thread::yield();
  }
  return {};
}

bool AwaitEnd(const UniqueFd& process) {
  constexpr int kMinute = 60 * 1000;
  pollfd entry{process.get(), POLLIN, 0};
  return poll(&entry, 1, kMinute) == 1;
}

}  // namespace fusion
