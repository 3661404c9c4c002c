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
  std::string dir;                       // working directory; empty: that of the caller
  std::vector<std::string> environment;  // additional variables, "NAME=VALUE"
  ProcessLimits limits;
  Orphan orphan = Orphan::kDies;
  int output_fd = -1;  // becomes stdout and stderr; -1: stdout to /dev/null, stderr inherited
  int pass_fd = -1;    // becomes descriptor 3; all others are closed
};

/// A program in its own process group, started by posix_spawn through fusion-exec. Its environment
/// is PATH, LC_ALL=C, TMPDIR=. (its working directory) and SpawnRequest::environment. If the
/// machine runs out of memory, the kernel kills it and its descendants before the caller.
///
/// The thread that called Spawn must outlive the child: when that thread ends, Linux signals the
/// death of the parent. Not thread-safe.
class ChildProcess {
 public:
  /// FailedPrecondition if the program cannot be started.
  static absl::StatusOr<ChildProcess> Spawn(const SpawnRequest& request);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Kills the remaining processes of the group.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// Readable once the child has ended; for poll().
  int pidfd() const { return pidfd_.get(); }

  /// The wait status once the child has ended, nullopt if it still runs after `timeout`. Processes
  /// that the child left in its group are killed, and reaped if this process adopts orphans
  /// (PR_SET_CHILD_SUBREAPER).
  std::optional<int> WaitFor(Nanoseconds timeout);

  /// Sends SIGKILL to the whole group.
  void KillGroup();

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<int> wait_status_;
};

}  // namespace fusion
