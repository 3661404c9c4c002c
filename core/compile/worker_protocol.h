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

/// Longest message in either direction, many times a kernel of a few dozen KiB with its source.
inline constexpr size_t kMaxWorkerMessageBytes = size_t{64} << 20;
/// Longest text in a reply: compiler and linker output, or an error message.
inline constexpr size_t kMaxWorkerTextBytes = size_t{1} << 20;
/// Longest name in a reply: an instruction set or a stage.
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

/// Pool -> worker: the next task.
using WorkerTask = std::variant<WorkerJob, KernelRace>;

/// Worker -> pool, the first message.
struct WorkerHello {
  int64_t abi_version = 0;  // FUSION_KERNEL_ABI_VERSION it checks against
  std::string isa;          // IsaName of the worker's machine
  std::string sandbox;      // level of confinement, or "none"
};

/// Worker -> pool: the current stage ("compile", "link", "check", "race"), for the error message if
/// the worker dies in it.
struct WorkerStage {
  std::string stage;
};

/// Worker -> pool: the end of the job.
struct WorkerResult {
  absl::Status status;  // OK: `binary` and `check` are valid
  std::string log;      // compiler and linker output, bounded
  std::string binary;
  bool built = false;          // compiler and linker succeeded
  bool out_of_memory = false;  // one of them failed for lack of memory
  CheckReport check;
  double compile_ms = 0;  // compiler and linker
  double check_ms = 0;
};

/// Worker -> pool: the end of a race. The kernels have passed their checks, so an error is
/// Internal: a kernel returned an error code, or does not match its reference.
struct WorkerRaceResult {
  absl::Status status;  // OK: `times` is valid
  RaceTimes times;
};

using WorkerReply = std::variant<WorkerHello, WorkerStage, WorkerResult, WorkerRaceResult>;

/// Encode and decode the messages of proto/fusion/v1/worker.proto. A worker runs untested code, so
/// its replies are not trusted: decoding fails with InvalidArgument, naming the field, on all bytes
/// that the functions here do not produce and on values out of range. Memory is proportional to the
/// bytes. Pure; any thread.
std::string EncodeJob(const WorkerJob& work);
std::string EncodeRace(const KernelRace& race);
absl::StatusOr<WorkerTask> DecodeTask(std::string_view bytes);
std::string EncodeReply(const WorkerReply& reply);
absl::StatusOr<WorkerReply> DecodeReply(std::string_view bytes);

}  // namespace fusion
