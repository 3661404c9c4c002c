#include "core/compile/worker_process.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "core/base/file.h"
#include "core/compile/child_process.h"
#include "core/compile/worker_protocol.h"

namespace fusion {
namespace {

// A process that got SIGKILL is gone long before, unless it hangs in the kernel.
constexpr Nanoseconds kKillLimit = std::chrono::seconds(5);

class RealWorker final : public WorkerProcess {
 public:
  RealWorker(ChildProcess child, UniqueFd socket)
      : child_(std::move(child)), channel_(std::move(socket), kMaxWorkerMessageBytes) {}

  FrameChannel& channel() override { return channel_; }

  std::string End(Nanoseconds grace) override {
    std::optional<int> status = child_.WaitFor(grace);
    if (!status.has_value()) {
      child_.KillGroup();
      status = child_.WaitFor(kKillLimit);
    }
    return status.has_value() ? DescribeWaitStatus(*status) : "does not die";
  }

 private:
  ChildProcess child_;
  FrameChannel channel_;
};

class RealStarter final : public WorkerStarter {
 public:
  explicit RealStarter(WorkerProcessOptions options) : options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(int slot) override {
    std::string dir = StrCat(options_.scratch_dir, "/slot-", slot);
    RETURN_IF_ERROR(RemoveTree(dir));
    RETURN_IF_ERROR(MakeDirectories(dir));
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return FailedPrecondition("socketpair: ", std::generic_category().message(errno));
    }
    UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    ASSIGN_OR_RETURN(ChildProcess child,
                     ChildProcess::Spawn({.exec_path = options_.exec_path,
                                          .argv = {options_.worker_path, options_.exec_path},
                                          .dir = dir,
                                          .limits = {.memory_bytes = options_.memory_bytes},
                                          .orphan = Orphan::kDies,
                                          .pass_fd = theirs.get()}));
    return std::make_unique<RealWorker>(std::move(child), std::move(ours));
  }

 private:
  const WorkerProcessOptions options_;
};

}  // namespace

std::unique_ptr<WorkerStarter> MakeWorkerStarter(WorkerProcessOptions options) {
  // Workers run in directories of their own.
  for (std::string* path : {&options.worker_path, &options.exec_path, &options.scratch_dir}) {
    *path = AbsolutePath(*path);
  }
  return std::make_unique<RealStarter>(std::move(options));
}

}  // namespace fusion
