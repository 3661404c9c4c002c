// bin/fusiond: reads its configuration, starts the server, stops it when a signal says so.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "server/daemon.h"
#include "server/grpc_server.h"

// Read by jemalloc before main. Buffers from 1 MiB on go back to the system when they are freed,
// the rest within a second, also where nothing allocates any more: else requests of 5 MB that are
// refused leave 58 MB behind (jemalloc 5.3, 2026-11-22; redo: server_test
// --gtest_filter=GuardTest.FiveMegabytes*). At once would cost planning half of its time again.
extern "C" {
const char* malloc_conf =
    "background_thread:true,oversize_threshold:1048576,dirty_decay_ms:1000,muzzy_decay_ms:0";
}

namespace fusion {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// One at a time, while this thread is the only one.
void PrepareProcess(const ServerConfig& config) {
  sigset_t stop = StopSignals();
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  signal(SIGPIPE, SIG_IGN);
  umask(0077);  // sockets, stores and scratch are the owner's
  if (config.exit_with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
}

int Run(const ServerConfig& config) {
  pid_t parent = getppid();
  PrepareProcess(config);
  // The parent may have ended before it was asked to be told.
  if (config.exit_with_parent && getppid() != parent) return 0;
  // gRPC's log handler outlives everything.
  Logger& logger = *MakeStderrLogger(config.log_level).release();
  SendGrpcLogTo(logger);
  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(config, SiblingPrograms(), logger);
  if (!daemon.ok()) {
    std::fprintf(stderr, "fusiond: %s\n", std::string(Message(daemon.status())).c_str());
    return 1;
  }
  sigset_t stop = StopSignals();
  int number = 0;
  sigwait(&stop, &number);  // later ones change nothing: some supervisors send it twice
  logger.Info("stopping", {{"signal", number == SIGTERM ? "SIGTERM" : "SIGINT"}});
  (*daemon)->Stop();
  logger.Info("stopped");
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  fusion::CommandLine line = fusion::ParseCommandLine(argc, argv);
  if (line.exit_code.has_value()) {
    std::fputs(line.text.c_str(), *line.exit_code == 0 ? stdout : stderr);
    return *line.exit_code;
  }
  return fusion::Run(line.config);
}
