// bin/fusion-worker: compiles, links and checks the kernels that the server sends over descriptor
// 3, one at a time, or times some side by side, until the server hangs up. Works in its current
// directory.
//
//   fusion-worker PATH_OF_FUSION_EXEC       (started by WorkerStarter)
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "core/base/kernel_abi.h"
#include "core/base/logging.h"
#include "core/check/kernel_race.h"
#include "core/check/reference_checker.h"
#include "core/compile/frame_channel.h"
#include "core/compile/job_runner.h"
#include "core/compile/sandbox.h"
#include "core/device/host_isa.h"

namespace fusion {
namespace {

constexpr int kSocket = 3;
// The server reads at once, or it is gone.
constexpr Nanoseconds kSendLimit = std::chrono::seconds(30);
// Only bounds the wait; the next job, or the server's end, ends it.
constexpr Nanoseconds kIdleSlice = std::chrono::seconds(60);

WorkerRaceResult Race(const KernelRace& race, const std::function<void(std::string_view)>& tell) {
  tell("race");
  absl::StatusOr<RaceTimes> times = RunRace(race);
  if (!times.ok()) return {Internal(Message(times.status())), {}};
  return {absl::OkStatus(), *std::move(times)};
}

absl::Status Serve(const std::string& exec_path, const std::string& sandbox) {
  FrameChannel channel{UniqueFd(kSocket), kMaxWorkerMessageBytes};
  auto commands = MakeProcessRunner(exec_path);
  ReferenceChecker checker;
  auto tell = [&](std::string_view stage) {
    // If it cannot be sent, neither can the result, and that ends the worker.
    channel.Send(EncodeReply(WorkerStage{std::string(stage)}), kSendLimit).IgnoreError();
  };
  JobRunner jobs(".", *commands, checker, tell);
  WorkerHello hello{FUSION_KERNEL_ABI_VERSION, std::string(HostIsaName()), sandbox};
  RETURN_IF_ERROR(channel.Send(EncodeReply(hello), kSendLimit));
  for (;;) {
    absl::StatusOr<std::optional<std::string>> body = channel.Receive(kIdleSlice);
    if (absl::IsUnavailable(body.status())) return absl::OkStatus();
    RETURN_IF_ERROR(body.status());
    if (!body->has_value()) continue;
    ASSIGN_OR_RETURN(WorkerTask task, DecodeTask(**body));
    const auto* job = std::get_if<WorkerJob>(&task);
    WorkerReply reply = job != nullptr ? WorkerReply(jobs.Run(*job))
                                       : WorkerReply(Race(std::get<KernelRace>(task), tell));
    RETURN_IF_ERROR(channel.Send(EncodeReply(reply), kSendLimit));
  }
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  if (argc != 2 || fcntl(3, F_GETFD) < 0) {
    std::fprintf(stderr, "fusion-worker: started by fusiond, not by people\n");
    return 2;
  }
  // Whatever this process starts gets no socket of ours.
  fcntl(3, F_SETFD, FD_CLOEXEC);
  absl::Status status = fusion::Serve(argv[1], fusion::EnterSandbox());
  if (!status.ok()) {
    fusion::MakeStderrLogger(fusion::LogLevel::kInfo)
        ->Error("worker_failed", {{"reason", fusion::Message(status)}});
  }
  // Kernels that were loaded may have left anything behind: no destructors.
  _exit(status.ok() ? 0 : 1);
}
