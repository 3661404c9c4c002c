#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/bundle/plan.h"
#include "core/compile/command.h"
#include "core/compile/compile_job.h"
#include "core/compile/kernel_race.h"

namespace fusion {

/// Longest message in either direction; a kernel of a few dozen KiB and its source fit many times.
inline constexpr size_t kMaxWorkerMessageBytes = size_t{64} << 20;
/// Longest text in a reply: what compiler and linker printed, an error message.
inline constexpr size_t kMaxWorkerTextBytes = size_t{1} << 20;
/// Longest name in a reply: an instruction set, a stage.
inline constexpr size_t kMaxWorkerNameBytes = 256;

/// Pool -> worker: one job, with the commands of the pool's toolchain.
struct WorkerJob {
  CompileJob job;
  std::vector<std::string> compile_argv;
  std::vector<std::string> link_argv;
  Nanoseconds command_limit = std::chrono::seconds(30);  // wall clock, each command
  ProcessLimits limits;                                  // of each command
  int64_t log_bytes = 64 << 10;
};

/// Pool -> worker: what to do next.
using WorkerTask = std::variant<WorkerJob, KernelRace>;

/// Worker -> pool, first thing: what it is.
struct WorkerHello {
  int64_t abi_version = 0;  // FUSION_KERNEL_ABI_VERSION it checks against
  std::string isa;          // IsaName of its machine
  std::string sandbox;      // what confines it, or "none"
};

/// Worker -> pool: what it does now ("compile", "link", "check", "race"), for the message if it
/// dies there.
struct WorkerStage {
  std::string stage;
};

/// Worker -> pool: the end of the job.
struct WorkerResult {
  absl::Status status;  // OK: `binary` and `check` count
  std::string log;      // what compiler and linker printed, bounded
  std::string binary;
  bool built = false;          // compiler and linker did their part
  bool out_of_memory = false;  // one of them did not, for want of memory
  CheckReport check;
  double compile_ms = 0;  // compiler and linker
  double check_ms = 0;
};

/// Worker -> pool: the end of a race. The kernels have passed their checks, so an error is
/// Internal: one of them answered a code, or does not fit its reference.
struct WorkerRaceResult {
  absl::Status status;  // OK: `times` counts
  RaceTimes times;
};

using WorkerReply = std::variant<WorkerHello, WorkerStage, WorkerResult, WorkerRaceResult>;

/// The messages of proto/fusion/v1/worker.proto as bytes. A worker runs untested code, so its
/// replies are not trusted: decoding fails with InvalidArgument, which names the field, on any
/// bytes but those that the functions here write, and on values out of range. It needs memory in
/// proportion to the bytes. Pure; any thread.
std::string EncodeJob(const WorkerJob& work);
std::string EncodeRace(const KernelRace& race);
absl::StatusOr<WorkerTask> DecodeTask(std::string_view bytes);
std::string EncodeReply(const WorkerReply& reply);
absl::StatusOr<WorkerReply> DecodeReply(std::string_view bytes);

}  // namespace fusion
