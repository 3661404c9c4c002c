#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/compile/command.h"
#include "core/compile/process/frame_channel.h"
#include "core/compile/sandbox/sandbox.h"

namespace fusion {

/// A running worker. The destructor kills it. Not thread-safe.
class WorkerProcess {
 public:
  virtual ~WorkerProcess() = default;

  /// Carries the messages of worker_protocol.h.
  virtual FrameChannel& channel() = 0;

  /// Waits up to `grace` for the worker to exit, then kills it with everything it started. Returns
  /// how it ended: "exited with 3", "killed by signal 11 (Segmentation fault)".
  virtual std::string End(Nanoseconds grace) = 0;

  /// Describes which limits (threads, bytes of files) the worker and its descendants exceed; empty:
  /// none. Takes some milliseconds, so call it at intervals.
  virtual std::string Excess() { return {}; }

  /// Describes directories that earlier workers of the slot left and that cannot be removed, if no
  /// earlier worker has reported them; empty: none.
  virtual std::string LeftBefore() { return {}; }
};

/// Starts workers; an interface so that tests of the pool need no processes. Outlives its workers.
/// Thread-safe.
class WorkerStarter {
 public:
  virtual ~WorkerStarter() = default;
  /// `slot` (0 <= slot < workers) has no worker now. Called by the thread that will use the worker.
  /// FailedPrecondition if no process can be started, or if directories that cannot be removed fill
  /// WorkerProcessOptions::max_dir_bytes; ResourceExhausted or Unavailable if the new directory
  /// cannot be made (disk full, or another reason). A later call may succeed.
  virtual absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(int slot) = 0;
};

struct WorkerProcessOptions {
  std::string worker_path;  // bin/fusion-worker
  std::string exec_path;    // bin/fusion-exec
  /// Parent of the workers' directories. Each worker uses a directory of its own,
  /// `<scratch_dir>/slot-<n>.<m>`, and clears it after each job; the next worker of the slot
  /// removes it. The names are always new, so that a directory that cannot be removed does not keep
  /// a slot from starting.
  std::string scratch_dir;
  /// Address space of a worker, which also runs the kernels it checks. 0: not limited.
  int64_t memory_bytes = int64_t{8} << 30;
  /// Most threads of a worker and its descendants. Limits of the system count all processes of a
  /// user, and do not apply to root. Chosen: kernels under check have one thread per CPU.
  int64_t max_threads = 512;
  /// Most bytes of the files of a slot, including files that could not be removed. A slot whose
  /// leftover files reach the limit starts no worker. A job needs a few MB.
  int64_t max_dir_bytes = int64_t{256} << 20;
  /// Confinement of workers; they do not start if it is not reached. kAuto: the strongest that
  /// works, without bubblewrap.
  Sandbox sandbox = Sandbox::kAuto;
  /// Files and directories that compilers may read besides ToolchainDirectories().
  std::vector<std::string> readable;
  std::string bwrap_path = "/usr/bin/bwrap";
};

/// The strongest confinement that works on this machine.
struct SandboxProbe {
  Sandbox sandbox = Sandbox::kNone;  // for WorkerProcessOptions::sandbox
  std::string level;                 // WorkerHello::sandbox: "bwrap landlock-7 seccomp ..."
};

/// Starts a worker that only reports its level. With kAuto it also tries bubblewrap.
/// FailedPrecondition, with the reason, if the requested sandbox does not work here.
absl::StatusOr<SandboxProbe> ProbeSandbox(const WorkerProcessOptions& options,
                                          CommandRunner& commands);

/// Starts real processes.
std::unique_ptr<WorkerStarter> MakeWorkerStarter(WorkerProcessOptions options);

}  // namespace fusion
