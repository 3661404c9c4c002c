#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/compile/command.h"
#include "core/compile/kernel_checker.h"
#include "core/compile/worker_protocol.h"

namespace fusion {

/// Does one job after the other: compiles and links in a directory of its own, then has the kernel
/// checked. Not thread-safe. `commands` and `checker` outlive it.
class JobRunner {
 public:
  /// `scratch_dir`: existing directory for the directories of the jobs. `on_stage` hears "compile",
  /// "link" and "check" as each begins.
  JobRunner(std::string scratch_dir, CommandRunner& commands, KernelChecker& checker,
            std::function<void(std::string_view stage)> on_stage);

  /// Always gives a result; whatever the job left on disk is gone then.
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
