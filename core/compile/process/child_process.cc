#include "core/compile/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <system_error>

namespace fusion {
namespace {

// How long a group that got SIGKILL may take to disappear (it may hang in a system call).
constexpr Nanoseconds kReapLimit = std::chrono::seconds(5);

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void Open(int fd, const char* path, int flags) {
    Note(posix_spawn_file_actions_addopen(&actions_, fd, path, flags, 0));
  }
  void Dup(int from, int to) { Note(posix_spawn_file_actions_adddup2(&actions_, from, to)); }
  void ChangeDirectory(const std::string& dir) {
    Note(posix_spawn_file_actions_addchdir_np(&actions_, dir.c_str()));
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }
  int error() const { return error_; }

 private:
  void Note(int error) {
    if (error != 0) error_ = error;
  }
  posix_spawn_file_actions_t actions_;
  int error_ = 0;
};

class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t set;
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&attributes_, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(&attributes_, &set);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Spawn(const SpawnRequest& request) {
  FileActions actions;
  actions.Open(STDIN_FILENO, "/dev/null", O_RDONLY);
  if (request.output_fd >= 0) {
    actions.Dup(request.output_fd, STDOUT_FILENO);
    actions.Dup(request.output_fd, STDERR_FILENO);
  } else {
    actions.Open(STDOUT_FILENO, "/dev/null", O_WRONLY);
  }
  if (request.pass_fd >= 0) actions.Dup(request.pass_fd, 3);
  if (!request.dir.empty()) actions.ChangeDirectory(request.dir);

  std::vector<std::string> words = LauncherArgv({.exec_path = request.exec_path,
                                                 .argv = request.argv,
                                                 .limits = request.limits,
                                                 .orphan = request.orphan,
                                                 .last_fd = request.pass_fd >= 0 ? 3 : 2,
                                                 .out_of_memory = OutOfMemory::kGoesFirst});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables = {"PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=."};
  variables.insert(variables.end(), request.environment.begin(), request.environment.end());
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);

  Attributes attributes;
  pid_t pid = -1;
  int error = actions.error();
  if (error == 0) {
    error = posix_spawn(&pid, request.exec_path.c_str(), actions.get(), attributes.get(),
                        argv.data(), environment.data());
  }
  if (error != 0) {
    return FailedPrecondition("starting ", Quote(request.argv[0]), " through ",
                              Quote(request.exec_path), ": ",
                              std::generic_category().message(error));
  }
  // Not pidfd_open(): the header of glibc 2.36 declares it without C linkage.
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    int reason = errno;
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return FailedPrecondition("pidfd_open: ", std::generic_category().message(reason));
  }
  return ChildProcess(pid, std::move(pidfd));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      wait_status_(other.wait_status_) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || wait_status_.has_value()) return;
  KillGroup();
  WaitFor(kReapLimit);
}

void ChildProcess::KillGroup() {
  // Once reaped, the number may belong to someone else.
  if (pid_ > 0 && !wait_status_.has_value()) kill(-pid_, SIGKILL);
}

std::optional<int> ChildProcess::WaitFor(Nanoseconds timeout) {
  if (wait_status_.has_value()) return wait_status_;
  pollfd ended{pidfd_.get(), POLLIN, 0};
  auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  if (poll(&ended, 1, static_cast<int>(ms)) <= 0) return std::nullopt;
  // The dead leader keeps its number until it is reaped, so this hits nobody else.
  KillGroup();
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  wait_status_ = status;
  // Those of the group that lost their parents are ours to reap, in a worker.
  while (waitpid(-pid_, nullptr, 0) > 0) {
  }
  return wait_status_;
}

}  // namespace fusion
