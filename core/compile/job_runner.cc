#include "core/compile/job_runner.h"

#include <filesystem>

#include "core/base/files/file.h"
#include "core/compile/toolchain.h"

namespace fusion {
namespace {

// Leaves room for the other fields of the message that carries it.
constexpr int64_t kMaxBinaryBytes = static_cast<int64_t>(kMaxWorkerMessageBytes) / 2;

// Recognises the messages of GCC, clang and the linker.
bool SaysOutOfMemory(std::string_view output) {
  for (std::string_view words :
       {"out of memory", "memory exhausted", "Cannot allocate memory", "std::bad_alloc"}) {
    if (output.find(words) != std::string_view::npos) return true;
  }
  return false;
}

double MillisecondsSince(Nanoseconds start) { return ToMilliseconds(Clock::Real().Now() - start); }

}  // namespace

JobRunner::JobRunner(std::string scratch_dir, CommandRunner& commands, KernelChecker& checker,
                     std::function<void(std::string_view stage)> on_stage)
    : scratch_dir_(std::move(scratch_dir)),
      commands_(commands),
      checker_(checker),
      on_stage_(std::move(on_stage)) {}

WorkerResult JobRunner::Run(const WorkerJob& work) {
  WorkerResult result;
  absl::StatusOr<TempDir> dir = TempDir::Create(scratch_dir_, "job-");
  if (!dir.ok()) {
    result.status = dir.status();
    return result;
  }
  Nanoseconds start = Clock::Real().Now();
  result.status = Build(work, dir->path(), &result);
  result.compile_ms = MillisecondsSince(start);
  if (result.status.ok()) {
    start = Clock::Real().Now();
    result.status = Check(work.job, &result);
    result.check_ms = MillisecondsSince(start);
  }
  return result;
}

absl::Status JobRunner::Build(const WorkerJob& work, const std::string& dir, WorkerResult* result) {
  // Line tables name the kernel: every source is kept under the same name here.
  const std::string line = StrCat("#line 1 \"", work.job.symbol, ".cc\"\n");
  RETURN_IF_ERROR(Toolchain::WriteSource(dir, StrCat(work.job.debug ? line : "", work.job.source)));
  on_stage_("compile");
  RETURN_IF_ERROR(RunTool(work, work.compile_argv, dir, result));
  on_stage_("link");
  RETURN_IF_ERROR(RunTool(work, work.link_argv, dir, result));
  absl::StatusOr<std::string> binary =
      ReadFile(StrCat(dir, "/", Toolchain::kBinaryName), kMaxBinaryBytes);
  // Missing or too long: it would be the same for this source every time.
  if (!binary.ok()) return Internal(Message(binary.status()));
  result->binary = *std::move(binary);
  result->built = true;
  return absl::OkStatus();
}

absl::Status JobRunner::RunTool(const WorkerJob& work, const std::vector<std::string>& argv,
                                const std::string& dir, WorkerResult* result) {
  Command command;
  command.argv = argv;
  command.dir = dir;
  // What compilers call their directory in line tables, whatever it is.
  if (work.job.debug) command.environment = {"PWD=/proc/self/cwd"};
  command.wall_limit = work.command_limit;
  command.limits = work.limits;
  command.log_bytes = work.log_bytes;
  ASSIGN_OR_RETURN(CommandResult ran, commands_.Run(command));
  StrAppend(&result->log, ran.output);
  if (ran.truncated) StrAppend(&result->log, "\n(more was printed)\n");
  if (ran.end == CommandEnd::kExited && ran.exit_code == 0) return absl::OkStatus();
  result->out_of_memory = SaysOutOfMemory(ran.output);
  std::string tool = std::filesystem::path(argv[0]).filename().string();
  if (ran.end == CommandEnd::kTimedOut) return DeadlineExceeded(tool, " ", ran.how);
  return Internal(tool, " ", ran.how);
}

absl::Status JobRunner::Check(const CompileJob& job, WorkerResult* result) {
  on_stage_("check");
  absl::StatusOr<CheckReport> report = checker_.Check(job, result->binary);
  if (!report.ok()) return Annotate(report.status(), "check");
  result->check = *std::move(report);
  return absl::OkStatus();
}

}  // namespace fusion
