#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/files/launcher.h"
#include "core/base/files/unique_fd.h"
#include "core/base/status.h"

namespace fusion {

struct SpawnRequest {
  std::string exec_path;                 // bin/fusion-exec
  std::vector<std::string> argv;         // argv[0]: absolute path of the program
  std::string dir;                       // working directory; empty: the caller's
  std::vector<std::string> environment;  // further variables, "NAME=VALUE"
  ProcessLimits limits;
  Orphan orphan = Orphan::kDies;
  int output_fd = -1;  // becomes stdout and stderr; -1: stdout to /dev/null, stderr inherited
  int pass_fd = -1;    // becomes descriptor 3; every other one is closed
};

/// A program in its own process group, started by posix_spawn through fusion-exec, with nothing in
/// its environment but PATH, LC_ALL=C, TMPDIR=. (its working directory) and
/// SpawnRequest::environment; where memory runs out it and what it starts go before the caller.
///
/// The thread that called Spawn must outlive the child: the kernel takes its end for the death of
/// the parent. Not thread-safe.
class ChildProcess {
 public:
  /// FailedPrecondition if the program cannot be started.
  static absl::StatusOr<ChildProcess> Spawn(const SpawnRequest& request);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Kills what is left of the group.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// Readable once the child has ended; for poll().
  int pidfd() const { return pidfd_.get(); }

  /// The wait status once the child has ended, nullopt if it runs on after `timeout`. Whatever the
  /// child left behind in its group is killed, and reaped if this process is where orphans go
  /// (PR_SET_CHILD_SUBREAPER).
  std::optional<int> WaitFor(Nanoseconds timeout);

  /// SIGKILL for the whole group.
  void KillGroup();

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<int> wait_status_;
};

}  // namespace fusion
