// bin/fusion-worker: compiles, links and checks the kernels that the server sends over descriptor
// 3, one at a time, or times some side by side, until the server hangs up. Works in its current
// directory and confines itself, and the processes in which kernels run further: see sandbox.h.
//
//   fusion-worker serve SANDBOX PATH_OF_FUSION_EXEC [READABLE...]   (started by WorkerStarter)
//   fusion-worker probe SANDBOX [READABLE...]      prints the level that serve would reach
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/base/files/file.h"
#include "core/base/kernel_abi.h"
#include "core/base/logging.h"
#include "core/check/kernel_race.h"
#include "core/check/reference_checker.h"
#include "core/compile/job_runner.h"
#include "core/compile/process/frame_channel.h"
#include "core/compile/runner_process.h"
#include "core/compile/sandbox/sandbox.h"
#include "core/device/host_isa.h"

namespace fusion {
namespace {

constexpr int kSocket = 3;
// The server reads at once, or it is gone.
constexpr Nanoseconds kSendLimit = std::chrono::seconds(30);
// Only bounds the wait; the next job, or the server's end, ends it.
constexpr Nanoseconds kIdleSlice = std::chrono::seconds(60);

// Ends as the process that ran the kernel did; the server interprets the exit status.
[[noreturn]] void EndLike(int wait_status) {
  if (!WIFSIGNALED(wait_status))
    _exit(WEXITSTATUS(wait_status) == 0 ? 1 : WEXITSTATUS(wait_status));
  signal(WTERMSIG(wait_status), SIG_DFL);
  raise(WTERMSIG(wait_status));
  _exit(1);
}

// Runs `body` confined and returns its reply. Ends this process if there is none.
template <typename Reply>
absl::StatusOr<Reply> Confined(Sandbox sandbox, const std::function<Reply()>& body) {
  ASSIGN_OR_RETURN(RunnerEnd end,
                   CallConfined(sandbox, [&] { return EncodeReply(WorkerReply(body())); }));
  if (!end.answered) EndLike(end.wait_status);
  absl::StatusOr<WorkerReply> reply = DecodeReply(end.answer);
  // A kernel that sends other replies has taken over its process.
  if (!reply.ok() || !std::holds_alternative<Reply>(*reply)) _exit(1);
  return std::get<Reply>(*std::move(reply));
}

class ConfinedChecker final : public KernelChecker {
 public:
  explicit ConfinedChecker(Sandbox sandbox) : sandbox_(sandbox) {}

  absl::StatusOr<CheckReport> Check(const CompileJob& job,
                                    std::string_view shared_object) override {
    ASSIGN_OR_RETURN(WorkerResult result, Confined<WorkerResult>(sandbox_, [&] {
                       WorkerResult checked;
                       absl::StatusOr<CheckReport> report = checker_.Check(job, shared_object);
                       checked.status = report.status();
                       if (report.ok()) checked.check = *std::move(report);
                       checked.binary.assign(1, '-');  // the caller has it; a result has one
                       return checked;
                     }));
    RETURN_IF_ERROR(result.status);
    return result.check;
  }

 private:
  const Sandbox sandbox_;
  ReferenceChecker checker_;
};

WorkerRaceResult Race(Sandbox sandbox, const KernelRace& race) {
  absl::StatusOr<WorkerRaceResult> result = Confined<WorkerRaceResult>(sandbox, [&] {
    absl::StatusOr<RaceTimes> times = RunRace(race);
    if (!times.ok()) return WorkerRaceResult{Internal(Message(times.status())), {}};
    return WorkerRaceResult{absl::OkStatus(), *std::move(times)};
  });
  return result.ok() ? *std::move(result) : WorkerRaceResult{result.status(), {}};
}

// The level reached, with bubblewrap around it if that was asked for.
absl::StatusOr<std::string> Enter(Sandbox sandbox, const std::vector<std::string>& readable) {
  // Orphans of compilers become children of this process, which reaps them.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ASSIGN_OR_RETURN(std::string level, ConfineCompilers(sandbox, readable));
  // Whether kernels can be confined is better known before the first one.
  RETURN_IF_ERROR(CallConfined(sandbox, [] { return std::string(); }).status());
  return StrCat(sandbox == Sandbox::kBwrap ? "bwrap " : "", level);
}

// Compilers can write beside the directory of their job, and must not meet what others left.
void ClearDirectory() {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(".", error)) {
    left.push_back(entry.path());
  }
  // What cannot be deleted waits for the end of this worker.
  for (const std::filesystem::path& path : left) RemoveTree(path).IgnoreError();
}

absl::Status Serve(Sandbox sandbox, const std::string& exec_path,
                   const std::vector<std::string>& readable) {
  ASSIGN_OR_RETURN(std::string level, Enter(sandbox, readable));
  FrameChannel channel{UniqueFd(kSocket), kMaxWorkerMessageBytes};
  auto commands = MakeProcessRunner(exec_path);
  ConfinedChecker checker(sandbox);
  auto tell = [&](std::string_view stage) {
    // If it cannot be sent, neither can the result, and that ends the worker.
    channel.Send(EncodeReply(WorkerStage{std::string(stage)}), kSendLimit).IgnoreError();
  };
  JobRunner jobs(".", *commands, checker, tell);
  WorkerHello hello{FUSION_KERNEL_ABI_VERSION, std::string(HostIsaName()), level};
  RETURN_IF_ERROR(channel.Send(EncodeReply(hello), kSendLimit));
  for (;;) {
    absl::StatusOr<std::optional<std::string>> body = channel.Receive(kIdleSlice);
    if (absl::IsUnavailable(body.status())) return absl::OkStatus();
    RETURN_IF_ERROR(body.status());
    if (!body->has_value()) continue;
    ASSIGN_OR_RETURN(WorkerTask task, DecodeTask(**body));
    WorkerReply reply = WorkerStage{};
    if (const auto* job = std::get_if<WorkerJob>(&task)) {
      reply = jobs.Run(*job);
      ClearDirectory();
    } else {
      tell("race");
      reply = Race(sandbox, std::get<KernelRace>(task));
    }
    RETURN_IF_ERROR(channel.Send(EncodeReply(reply), kSendLimit));
  }
}

absl::Status Probe(Sandbox sandbox, const std::vector<std::string>& readable) {
  ASSIGN_OR_RETURN(std::string level, Enter(sandbox, readable));
  std::printf("%s\n", level.c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(Sandbox sandbox, ParseSandbox(words[1]));
  if (words[0] == "probe") return Probe(sandbox, {words.begin() + 2, words.end()});
  // Whatever this process starts gets no socket of ours.
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  return Serve(sandbox, words[2], {words.begin() + 3, words.end()});
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool probe = words.size() >= 2 && words[0] == "probe";
  const bool serve = words.size() >= 3 && words[0] == "serve" && fcntl(3, F_GETFD) >= 0;
  if (!probe && !serve) {
    std::fprintf(stderr, "fusion-worker: started by fusiond, not by people\n");
    return 2;
  }
  absl::Status status = fusion::Run(words);
  if (!status.ok() && probe) {
    std::fprintf(stderr, "%s\n", std::string(fusion::Message(status)).c_str());
  } else if (!status.ok()) {
    fusion::MakeStderrLogger(fusion::LogLevel::kInfo)
        ->Error("worker_failed", {{"reason", fusion::Message(status)}});
  }
  _exit(status.ok() ? 0 : 1);
}
