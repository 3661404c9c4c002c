#include "client/fusionctl/service/embedded_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/files/launcher.h"
#include "core/base/files/unwritable.h"
#include "core/base/threads/named_thread.h"
#include "core/base/threads/shortage.h"

namespace fusion {
namespace {

// Time for the server to close its store; it does not drain.
constexpr Nanoseconds kStopTimeout = std::chrono::seconds(10);

// Interval of retries while another process has the store open.
constexpr Nanoseconds kStoreRetry = std::chrono::milliseconds(200);

// Recognised by the server's message: it has no exit code of its own.
bool IsStoreTaken(const absl::Status& status) {
  return Message(status).find(" is open already") != std::string_view::npos;
}

std::string ErrorText() { return std::strerror(errno); }

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  return set;
}

// True if a descriptor becomes readable in time.
bool AwaitReadable(int fd, Nanoseconds timeout) {
  pollfd entry{fd, POLLIN, 0};
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  return poll(&entry, 1, static_cast<int>(ms)) > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EmbeddedServer>> EmbeddedServer::Start(const Options& options) {
  // Not TMPDIR: the path of a unix socket has at most 107 bytes.
  ASSIGN_OR_RETURN(Scratch directory, Scratch::Create("/tmp", "fusionctl-"));
  std::unique_ptr<EmbeddedServer> server(new EmbeddedServer(std::move(directory)));
  RETURN_IF_ERROR(server->WatchSignals());
  RETURN_IF_ERROR(server->Spawn(options));
  server->watcher_ = NamedThread("server-watch", [raw = server.get()] { raw->Watch(); });
  absl::Status up = server->AwaitSocket(options.start_timeout);
  Nanoseconds end = Clock::Real().Now() + options.store_timeout;
  while (!up.ok() && IsStoreTaken(up) && Clock::Real().Now() < end) {
    std::this_thread::sleep_for(kStoreRetry);
    RETURN_IF_ERROR(server->Respawn(options));
    up = server->AwaitSocket(options.start_timeout);
  }
  RETURN_IF_ERROR(up);
  return server;
}

EmbeddedServer::~EmbeddedServer() {
  if (watcher_.joinable()) {
    eventfd_write(quit_.get(), 1);
    watcher_.join();
  }
  Stop();
  sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::string EmbeddedServer::address() const {
  return StrCat("unix:", directory_.path(), "/socket");
}

absl::Status EmbeddedServer::WatchSignals() {
  sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC));
  quit_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (!signals_.valid() || !quit_.valid()) return Unavailable("no descriptors: ", ErrorText());
  return absl::OkStatus();
}

absl::Status EmbeddedServer::Spawn(const Options& options) {
  std::string program = options.program.empty() ? SiblingProgram("fusiond") : options.program;
  if (access(program.c_str(), X_OK) != 0) {
    return Unavailable("fusiond cannot be started: ", Quote(program), ": ", ErrorText());
  }
  // fusion-exec makes the server die with this process from its first instruction on. The server's
  // own --exit-with-parent works later, but stops it in order.
  Launch launch{.exec_path = SiblingProgram("fusion-exec"),
                .argv = {program, "--listen", address(), "--log-level", "warning",
                         "--drain-seconds", "0", "--grace-seconds", "1", "--exit-with-parent"},
                .limits = {},
                .orphan = Orphan::kDies};
  auto add = [&launch](const char* flag, const std::string& value) {
    launch.argv.insert(launch.argv.end(), {flag, value});
  };
  if (!options.store.empty()) {
    add("--store", options.store);
    add("--store-limit", StrCat(options.store_limit_bytes));
  }
  if (options.insecure_permissions) launch.argv.emplace_back("--insecure-permissions");
  for (const std::string& key : options.import_keys) add("--import-key", key);
  if (!options.signing_key.empty()) add("--signing-key", options.signing_key);
  if (options.workers > 0) add("--workers", StrCat(options.workers));
  std::vector<std::string> words = LauncherArgv(launch);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  std::string log = directory_.path() + "/log";
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // A group of its own: the terminal's ^C is for this program, which then stops the server.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  int error = posix_spawn(&pid_, words[0].c_str(), &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    pid_ = -1;
    return Unavailable("fusiond cannot be started: ", Quote(words[0]), ": ", std::strerror(error));
  }
  // <sys/pidfd.h> of glibc 2.36 cannot be linked from C++.
  process_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!process_.valid()) return Unavailable("no descriptor for fusiond: ", ErrorText());
  return absl::OkStatus();
}

absl::Status EmbeddedServer::Respawn(const Options& options) {
  MutexLock lock(&mutex_);
  if (stopped_) return Unavailable("fusiond is stopped");
  Reap();
  pid_ = -1;
  wait_status_.reset();
  return Spawn(options);
}

absl::Status EmbeddedServer::AwaitSocket(Nanoseconds timeout) {
  UniqueFd changes(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!changes.valid() ||
      inotify_add_watch(changes.get(), directory_.path().c_str(), IN_CREATE | IN_MOVED_TO) < 0) {
    return Unavailable("the start of fusiond cannot be watched: ", ErrorText());
  }
  std::string socket = directory_.path() + "/socket";
  Nanoseconds end = Clock::Real().Now() + timeout;
  while (access(socket.c_str(), F_OK) != 0) {
    Nanoseconds left = end - Clock::Real().Now();
    if (left <= Nanoseconds(0)) return Unavailable("fusiond did not start in time");
    std::array<pollfd, 2> entries{{{changes.get(), POLLIN, 0}, {process_.get(), POLLIN, 0}}};
    auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1;
    poll(entries.data(), entries.size(), static_cast<int>(ms));
    if (entries[1].revents != 0) return CheckRunning(Nanoseconds(0));
    std::array<char, 4096> events;
    while (read(changes.get(), events.data(), events.size()) > 0) {
    }
  }
  return absl::OkStatus();
}

absl::Status EmbeddedServer::CheckRunning(Nanoseconds timeout) {
  if (!AwaitReadable(process_.get(), timeout)) return absl::OkStatus();
  MutexLock lock(&mutex_);
  std::string words = LastWords();
  const std::string why = StrCat("fusiond ended: ", DescribeWaitStatus(Reap()),
                                 words.empty() ? "" : StrCat("; it said: ", words));
  struct statvfs room {};
  if (words.empty() && statvfs(directory_.path().c_str(), &room) == 0 && room.f_bavail == 0) {
    return WithWriteError(
        Unavailable(why, "; no space left in directory ", Quote(directory_.path())), ENOSPC);
  }
  // It has what this process has.
  return words.find(kShortage) != std::string::npos ? ResourceExhausted(why) : Unavailable(why);
}

// How it ended; waits for that.
int EmbeddedServer::Reap() {
  if (!wait_status_.has_value()) {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    wait_status_ = status;
  }
  return *wait_status_;
}

std::string EmbeddedServer::LastWords() const {
  absl::StatusOr<std::string> log = ReadFile(directory_.path() + "/log", int64_t{16} << 20);
  if (!log.ok()) return "";
  std::string_view text = StripSpace(*log);
  // Its workers may say something after it.
  const size_t shortage = text.rfind(kShortage);
  if (shortage != std::string_view::npos) text = text.substr(0, text.find('\n', shortage));
  std::string_view last = text.substr(text.rfind('\n') + 1);  // npos + 1 is 0
  return std::string(last.substr(0, 500));
}

void EmbeddedServer::Watch() {
  std::array<pollfd, 2> entries{{{signals_.get(), POLLIN, 0}, {quit_.get(), POLLIN, 0}}};
  while (poll(entries.data(), entries.size(), -1) < 0 && errno == EINTR) {
  }
  if (entries[0].revents == 0) return;
  signalfd_siginfo info{};
  if (read(signals_.get(), &info, sizeof(info)) != sizeof(info)) return;
  Stop();
  RemoveTree(directory_.path()).IgnoreError();
  auto number = static_cast<int>(info.ssi_signo);
  signal(number, SIG_DFL);
  sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
}

void EmbeddedServer::Stop() {
  MutexLock lock(&mutex_);
  if (stopped_ || pid_ < 0) return;
  stopped_ = true;
  if (wait_status_.has_value()) return;
  kill(pid_, SIGTERM);
  if (!process_.valid() || !AwaitReadable(process_.get(), kStopTimeout)) kill(pid_, SIGKILL);
  Reap();
}

}  // namespace fusion
