#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/compile/command.h"
#include "core/compile/kernel_checker.h"
#include "core/compile/worker_protocol.h"

namespace fusion {

/// Runs jobs one after the other: compiles and links in a new directory, then checks the kernel.
/// Not thread-safe. `commands` and `checker` outlive it.
class JobRunner {
 public:
  /// `scratch_dir`: existing directory, for the directories of the jobs. `on_stage` gets "compile",
  /// "link" and "check" as each begins.
  JobRunner(std::string scratch_dir, CommandRunner& commands, KernelChecker& checker,
            std::function<void(std::string_view stage)> on_stage);

  /// Failures are in WorkerResult::status. Removes all files of the job before it returns.
  WorkerResult Run(const WorkerJob& work);

 private:
  absl::Status Build(const WorkerJob& work, const std::string& dir, WorkerResult* result);
  absl::Status RunTool(const WorkerJob& work, const std::vector<std::string>& argv,
                       const std::string& dir, WorkerResult* result);
  absl::Status Check(const CompileJob& job, WorkerResult* result);

  const std::string scratch_dir_;
  CommandRunner& commands_;
  KernelChecker& checker_;
  const std::function<void(std::string_view stage)> on_stage_;
};

}  // namespace fusion
