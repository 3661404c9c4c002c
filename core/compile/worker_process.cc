#include "core/compile/worker_process.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include "core/base/files/file.h"
#include "core/base/threads/mutex.h"
#include "core/compile/process/child_process.h"
#include "core/compile/process/resource_use.h"
#include "core/compile/worker_protocol.h"

namespace fusion {
namespace {

// A process that got SIGKILL is gone long before, unless it hangs in the kernel.
constexpr Nanoseconds kKillLimit = std::chrono::seconds(5);
constexpr Nanoseconds kProbeLimit = std::chrono::seconds(10);

// bubblewrap around a command that sees the toolchain, `readable`, its own /tmp, and `dir`, which
// is writable and its working directory. Paths are the same inside and outside.
std::vector<std::string> BwrapArgv(const WorkerProcessOptions& options, const std::string& dir,
                                   const std::vector<std::string>& command) {
  std::vector<std::string> argv = {options.bwrap_path, "--unshare-all", "--die-with-parent",
                                   "--cap-drop", "ALL"};
  auto add = [&](std::initializer_list<std::string> words) {
    argv.insert(argv.end(), words.begin(), words.end());
  };
  add({"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"});
  for (const std::string& path : ToolchainDirectories()) {
    std::error_code error;  // of what is no link
    std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) {
      add({"--ro-bind-try", path, path});
    } else {
      add({"--symlink", target.string(), path});  // /bin -> usr/bin
    }
  }
  for (const std::string& path : options.readable) add({"--ro-bind-try", path, path});
  for (const std::string& path : {options.worker_path, options.exec_path}) {
    add({"--ro-bind", path, path});
  }
  add({"--bind", dir, dir, "--chdir", dir, "--"});
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

// A worker in its directory; `words`: its first arguments.
std::vector<std::string> WorkerArgv(const WorkerProcessOptions& options, const std::string& dir,
                                    std::vector<std::string> words) {
  std::vector<std::string> argv = {options.worker_path};
  argv.insert(argv.end(), words.begin(), words.end());
  argv.push_back(options.worker_path);
  argv.push_back(options.exec_path);
  argv.insert(argv.end(), options.readable.begin(), options.readable.end());
  return options.sandbox == Sandbox::kBwrap ? BwrapArgv(options, dir, argv) : argv;
}

// Workers run in directories of their own.
WorkerProcessOptions WithAbsolutePaths(WorkerProcessOptions options) {
  for (std::string* path : {&options.worker_path, &options.exec_path, &options.scratch_dir}) {
    *path = AbsolutePath(*path);
  }
  return options;
}

absl::StatusOr<SandboxProbe> Probe(WorkerProcessOptions options, Sandbox sandbox,
                                   CommandRunner& commands) {
  options.sandbox = sandbox;
  const std::string name(SandboxName(sandbox));
  if (sandbox == Sandbox::kBwrap && access(options.bwrap_path.c_str(), X_OK) != 0) {
    return FailedPrecondition("sandbox ", Quote(name), ": there is no ", options.bwrap_path,
                              " (package bubblewrap)");
  }
  ASSIGN_OR_RETURN(TempDir dir, TempDir::Create(options.scratch_dir, "sandbox-"));
  Command command;
  command.argv = WorkerArgv(options, dir.path(), {"probe", name});
  command.dir = dir.path();
  command.wall_limit = kProbeLimit;
  command.limits.memory_bytes = options.memory_bytes;
  ASSIGN_OR_RETURN(CommandResult result, commands.Run(command));
  const std::string words(StripSpace(result.output));
  if (result.end == CommandEnd::kExited && result.exit_code == 0) {
    return SandboxProbe{sandbox, words};
  }
  return FailedPrecondition("sandbox ", Quote(name),
                            " does not work here: ", words.empty() ? result.how : words);
}

class RealWorker final : public WorkerProcess {
 public:
  struct Place {
    std::string dir;
    int64_t max_bytes = 0;  // of files in it
    std::string left_before;
  };

  // `options` and `processes` outlive it.
  RealWorker(const WorkerProcessOptions& options, ProcessTable& processes, Place place,
             ChildProcess child, UniqueFd socket)
      : options_(options),
        processes_(processes),
        place_(std::move(place)),
        child_(std::move(child)),
        channel_(std::move(socket), kMaxWorkerMessageBytes) {}

  FrameChannel& channel() override { return channel_; }

  std::string End(Nanoseconds grace) override {
    std::optional<int> status = child_.WaitFor(grace);
    if (!status.has_value()) {
      child_.KillGroup();
      status = child_.WaitFor(kKillLimit);
    }
    if (!status.has_value()) return "does not die";
    // bubblewrap reports a signal of its child as shells do.
    const bool bwrap = options_.sandbox == Sandbox::kBwrap;
    const bool told = bwrap && WIFEXITED(*status) && WEXITSTATUS(*status) > 128;
    return DescribeWaitStatus(told ? WEXITSTATUS(*status) - 128 : *status);
  }

  std::string Excess() override {
    const int64_t threads = processes_.ThreadsOf(child_.pid());
    if (threads > options_.max_threads) {
      return StrCat(threads, " processes and threads; at most ", options_.max_threads);
    }
    if (BytesBelow(place_.dir, place_.max_bytes) <= place_.max_bytes) return {};
    return StrCat("more than ", place_.max_bytes, " bytes of files");
  }

  std::string LeftBefore() override { return place_.left_before; }

 private:
  const WorkerProcessOptions& options_;
  ProcessTable& processes_;
  const Place place_;
  ChildProcess child_;
  FrameChannel channel_;
};

class RealStarter final : public WorkerStarter {
 public:
  explicit RealStarter(WorkerProcessOptions options) : options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(int slot) override {
    Past& past = PastOf(slot);
    ASSIGN_OR_RETURN(RealWorker::Place place, NextPlace(slot, &past));
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return FailedPrecondition("socketpair: ", std::generic_category().message(errno));
    }
    UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    ASSIGN_OR_RETURN(ChildProcess child,
                     ChildProcess::Spawn({.exec_path = options_.exec_path,
                                          .argv = WorkerArgv(options_, place.dir, Words()),
                                          .dir = place.dir,
                                          .limits = {.memory_bytes = options_.memory_bytes},
                                          .orphan = Orphan::kDies,
                                          .pass_fd = theirs.get()}));
    for (Left& left : past.left) left.told = left.dir != place.dir;
    return std::make_unique<RealWorker>(options_, processes_, std::move(place), std::move(child),
                                        std::move(ours));
  }

 private:
  struct Left {
    std::string dir;
    bool told = false;  // by LeftBefore
  };
  // Of one slot; only its thread looks at it.
  struct Past {
    int64_t starts = 0;
    std::vector<Left> left;  // directories that may still be there, the newest last
  };

  Past& PastOf(int slot) {
    MutexLock lock(&mutex_);
    return pasts_[slot];
  }

  // Creates a new directory, after removing earlier ones if possible.
  absl::StatusOr<RealWorker::Place> NextPlace(int slot, Past* past) {
    RealWorker::Place place;
    place.max_bytes = options_.max_dir_bytes;
    absl::Status removed;
    std::vector<Left> stay;
    std::vector<std::string> untold;
    for (Left& left : past->left) {
      absl::Status gone = RemoveTree(left.dir);
      if (gone.ok()) continue;
      place.max_bytes -= BytesBelow(left.dir, place.max_bytes);
      if (!left.told) untold.emplace_back(Message(gone));
      removed = std::move(gone);
      stay.push_back(std::move(left));
    }
    past->left = std::move(stay);
    place.left_before = StrJoin(untold, "; ");
    if (place.max_bytes <= 0) {
      return FailedPrecondition("what earlier workers of slot ", slot, " left takes all of its ",
                                options_.max_dir_bytes, " bytes: ", Message(removed));
    }
    place.dir = StrCat(options_.scratch_dir, "/slot-", slot, ".", ++past->starts);
    past->left.push_back({place.dir});
    // Another starter may have used the name.
    RETURN_IF_ERROR(RemoveTree(place.dir));
    RETURN_IF_ERROR(MakeDirectories(place.dir));
    return place;
  }

  std::vector<std::string> Words() const {
    return {"serve", std::string(SandboxName(options_.sandbox)), options_.exec_path};
  }

  const WorkerProcessOptions options_;
  ProcessTable processes_;
  Mutex mutex_;
  std::map<int, Past> pasts_ ABSL_GUARDED_BY(mutex_);  // by slot
};

}  // namespace

absl::StatusOr<SandboxProbe> ProbeSandbox(const WorkerProcessOptions& options,
                                          CommandRunner& commands) {
  const WorkerProcessOptions absolute = WithAbsolutePaths(options);
  if (options.sandbox == Sandbox::kAuto) {
    absl::StatusOr<SandboxProbe> bwrap = Probe(absolute, Sandbox::kBwrap, commands);
    if (bwrap.ok()) return bwrap;
  }
  return Probe(absolute, options.sandbox, commands);
}

std::unique_ptr<WorkerStarter> MakeWorkerStarter(WorkerProcessOptions options) {
  return std::make_unique<RealStarter>(WithAbsolutePaths(std::move(options)));
}

}  // namespace fusion
