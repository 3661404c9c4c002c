#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/compile/command.h"
#include "core/compile/frame_channel.h"
#include "core/compile/sandbox/sandbox.h"

namespace fusion {

/// One worker as the pool sees it. Destroying it kills it. Not thread-safe.
class WorkerProcess {
 public:
  virtual ~WorkerProcess() = default;

  /// Speaks worker_protocol.h.
  virtual FrameChannel& channel() = 0;

  /// Ends the worker with everything it started and says how it ended: "exited with 3", "killed by
  /// signal 11 (Segmentation fault)". Waits up to `grace` for it to end by itself first.
  virtual std::string End(Nanoseconds grace) = 0;

  /// What it, with all that it started, uses beyond its bounds, in words; empty: nothing. For now
  /// and then: it takes some milliseconds.
  virtual std::string Excess() { return {}; }

  /// What workers before it in its slot left that cannot be removed, and of which no earlier one
  /// told, in words; empty: nothing.
  virtual std::string LeftBefore() { return {}; }
};

/// Starts workers; an interface so that the pool's tests need no processes. Outlives its
/// workers. Thread-safe.
class WorkerStarter {
 public:
  virtual ~WorkerStarter() = default;
  /// `slot` (0 <= slot < workers) has no worker now. Called by the thread that will use the worker.
  virtual absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(int slot) = 0;
};

struct WorkerProcessOptions {
  std::string worker_path;  // bin/fusion-worker
  std::string exec_path;    // bin/fusion-exec
  /// Each worker works in a directory of its own, `<scratch_dir>/slot-<n>.<m>`, which it clears
  /// after each job; the next one of its slot removes it. A new name: what cannot be removed must
  /// not keep a slot from starting.
  std::string scratch_dir;
  /// Address space of a worker, which also runs the kernels it checks. 0: not limited.
  int64_t memory_bytes = int64_t{8} << 30;
  /// Threads of a worker and of everything it started; limits of the system count those of a whole
  /// user, or none of root's. Chosen: kernels under check have one per CPU.
  int64_t max_threads = 512;
  /// Of all files of a slot, those included that could not be removed: a slot starts no worker
  /// while they take all of it. A job needs a few MB.
  int64_t max_dir_bytes = int64_t{256} << 20;
  /// Confines workers, or they do not start. kAuto: as far as it goes, without bubblewrap.
  Sandbox sandbox = Sandbox::kAuto;
  /// Files and directories that compilers need besides ToolchainDirectories().
  std::vector<std::string> readable;
  std::string bwrap_path = "/usr/bin/bwrap";
};

/// What WorkerProcessOptions::sandbox comes to on this machine.
struct SandboxProbe {
  Sandbox sandbox = Sandbox::kNone;  // to start workers with
  std::string level;                 // as workers will say: "bwrap landlock-7 seccomp ..."
};

/// Finds out by starting a worker that does nothing else. Tries bubblewrap too with kAuto.
/// FailedPrecondition, with the reason, if what was asked for does not work here.
absl::StatusOr<SandboxProbe> ProbeSandbox(const WorkerProcessOptions& options,
                                          CommandRunner& commands);

/// Starts real processes.
std::unique_ptr<WorkerStarter> MakeWorkerStarter(WorkerProcessOptions options);

}  // namespace fusion
