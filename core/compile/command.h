#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/compile/process/child_process.h"

namespace fusion {

/// A program to run to completion, with its limits.
struct Command {
  std::vector<std::string> argv;         // argv[0]: absolute path
  std::string dir;                       // working directory
  std::vector<std::string> environment;  // additional variables, "NAME=VALUE"
  Nanoseconds wall_limit = std::chrono::seconds(30);
  ProcessLimits limits;
  int64_t log_bytes = 64 << 10;    // kept of stdout and stderr together
  int64_t output_bytes = 8 << 20;  // more output ends the command (kFlooded)
};

/// kTimedOut: wall clock or CPU time.
enum class CommandEnd : uint8_t { kExited, kSignalled, kTimedOut, kFlooded };

struct CommandResult {
  CommandEnd end = CommandEnd::kExited;
  int exit_code = -1;      // kExited
  std::string how;         // "exited with 1", "killed after 30 s", "killed by signal 6 (Aborted)"
  std::string output;      // the first Command::log_bytes
  bool truncated = false;  // there was more
  Nanoseconds took{0};
};

/// Runs commands; an interface so that tests need no compiler. Thread-safe.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  /// Waits for the end. FailedPrecondition if the program cannot be started; a command that fails,
  /// hangs or floods is a result.
  virtual absl::StatusOr<CommandResult> Run(const Command& command) = 0;
};

/// Runs real processes, each in its own process group. The group is gone when Run returns, and dies
/// with the caller. `exec_path`: bin/fusion-exec.
std::unique_ptr<CommandRunner> MakeProcessRunner(const std::string& exec_path);

}  // namespace fusion
