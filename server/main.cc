// bin/fusiond: reads its configuration, starts the server, stops it on a signal.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "core/base/text/utf8.h"
#include "core/base/threads/named_thread.h"
#include "core/base/threads/shortage.h"
#include "server/check_config.h"
#include "server/daemon.h"
#include "server/observe/service_notice.h"
#include "server/rpc/grpc_server.h"

// Read by jemalloc before main. Freed buffers of 1 MiB and more are returned to the system at once,
// smaller ones within a second, even if nothing allocates any more. Otherwise refused requests of 5
// MB leave 58 MB behind (jemalloc 5.3, 2026-11-22; redo: server_test
// --gtest_filter=GuardTest.FiveMegabytes*). Returning everything at once would make planning take
// 1.5 times as long.
extern "C" {
const char* malloc_conf =
    "background_thread:true,oversize_threshold:1048576,dirty_decay_ms:1000,muzzy_decay_ms:0";
}

namespace fusion {
namespace {

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int number : signals) sigaddset(&set, number);
  return set;
}

// Call it while this thread is the only one.
void PrepareProcess(const ServerConfig& config) {
  sigset_t ours = SetOf({SIGTERM, SIGINT, SIGHUP});
  pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  signal(SIGPIPE, SIG_IGN);
  umask(0077);  // sockets, stores and scratch are the owner's
  // Each connection takes a file descriptor, and the usual limit is for programs that use select().
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  // Debian's Abseil looks for deadlocks at each lock of gRPC's, under one lock for the process.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (config.exit_with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
}

// The next signal for us; 0 if none came within `limit`.
int NextSignal(const sigset_t& signals, Nanoseconds limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  timespec wait{};
  wait.tv_sec = seconds.count();
  wait.tv_nsec = (limit - seconds).count();
  const int number = sigtimedwait(&signals, nullptr, &wait);
  return number < 0 ? 0 : number;
}

// Returns the signal that ends the server.
int Serve(Daemon& daemon, const ServiceNotice& notice, Logger& logger) {
  const sigset_t signals = SetOf({SIGTERM, SIGINT, SIGHUP});
  const Nanoseconds beat = notice.watchdog().value_or(std::chrono::hours(1));
  for (;;) {
    const int number = NextSignal(signals, beat);
    if (notice.watchdog().has_value()) notice.Send("WATCHDOG=1");
    if (number == SIGTERM || number == SIGINT) return number;
    if (number != SIGHUP) continue;
    logger.Info("reloading");
    daemon.Reload();
  }
}

// A second SIGINT (Ctrl-C) skips the waits. A second SIGTERM does not: supervisors may repeat it.
void Stop(Daemon& daemon, Logger& logger) {
  std::atomic<bool> stopped{false};
  std::thread impatience = NamedThread("stop-signals", [&] {
    const sigset_t signals = SetOf({SIGINT});
    while (!stopped) {
      if (NextSignal(signals, std::chrono::milliseconds(50)) != SIGINT) continue;
      logger.Warning("stopping_at_once", {{"signal", "SIGINT"}});
      daemon.Hurry();
    }
  });
  daemon.Stop();
  stopped = true;
  impatience.join();
}

// Threads that a start takes at most: 115 with the default configuration on 2 cores (gRPC 1.51,
// 2026-11-29; redo: ls /proc/PID/task | wc -l), and some for each further core.
int ThreadsOfStart() { return 128 + 4 * static_cast<int>(std::thread::hardware_concurrency()); }

int Run(const CommandLine& line, const ServiceNotice& notice) {
  const ServerConfig& config = line.config;
  pid_t parent = getppid();
  PrepareProcess(config);
  // The parent may have ended before the prctl.
  if (config.exit_with_parent && getppid() != parent) return 0;
  // gRPC's log handler outlives everything.
  Logger& logger = *MakeStderrLogger(config.log_level).release();
  SendGrpcLogTo(logger);
  // gRPC joins threads that it could not start, which is a crash.
  if (const absl::Status room = CheckThreads(ThreadsOfStart()); !room.ok()) {
    std::fprintf(stderr, "fusiond: %s\n", kShortage);
    return 1;
  }
  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(config, SiblingPrograms(), logger);
  if (!daemon.ok()) {
    std::string why = line.lines.Locate(Message(daemon.status()), line.given);
    std::fprintf(stderr, "fusiond: %s\n", OneLine(why).c_str());
    return 1;
  }
  notice.Send("READY=1\nSTATUS=serving");
  const int number = Serve(**daemon, notice, logger);
  logger.Info("stopping", {{"signal", number == SIGTERM ? "SIGTERM" : "SIGINT"}});
  notice.Send("STOPPING=1\nSTATUS=draining");
  Stop(**daemon, logger);
  logger.Info("stopped");
  return 0;
}

// --check-config: prints one line for each finding.
int Check(const CommandLine& line) {
  for (const std::string& problem : line.problems) {
    std::printf("bad   %s\n", OneLine(problem).c_str());
  }
  size_t wrong = line.problems.size();
  bool busy = false;
  for (const ConfigFinding& finding : CheckConfig(line.config, SiblingPrograms())) {
    const bool ok = finding.status.ok();
    busy |= finding.busy;
    if (!ok && !finding.busy) ++wrong;
    std::string text = ok ? finding.what : line.lines.Locate(Message(finding.status), line.given);
    std::printf("%s  %s\n", ok ? "ok  " : finding.busy ? "busy" : "bad ", OneLine(text).c_str());
  }
  std::printf("%s\n", wrong > 0 ? "a start would not work"
                      : busy    ? "a start would work once nobody uses what is busy"
                                : "a start would work");
  return wrong == 0 ? 0 : 2;
}

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread yet
  return value == nullptr ? "" : value;
}

}  // namespace
}  // namespace fusion

// Nothing below this file reads the environment.
int main(int argc, char** argv) {
  std::set_terminate([] {
    if (!fusion::IsShortage(std::current_exception())) std::abort();
    std::fprintf(stderr, "fusiond: %s\n", fusion::kShortage);  // takes no memory
    std::_Exit(1);
  });
  fusion::CommandLine line = fusion::ParseCommandLine(argc, argv);
  if (line.exit_code.has_value()) {
    std::fputs(line.text.c_str(), *line.exit_code == 0 ? stdout : stderr);
    return *line.exit_code;
  }
  if (line.check_only) return fusion::Check(line);
  const fusion::ServiceNotice notice(fusion::FromEnvironment("NOTIFY_SOCKET"),
                                     fusion::FromEnvironment("WATCHDOG_USEC"));
  // Child processes must not notify the service manager.
  unsetenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe): no thread yet
  unsetenv("WATCHDOG_USEC");  // NOLINT(concurrency-mt-unsafe): no thread yet
  return fusion::Run(line, notice);
}
