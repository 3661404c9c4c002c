#pragma once

#include <functional>
#include <string>

#include "core/compile/sandbox/sandbox.h"

namespace fusion {

/// The end of a call in a separate process.
struct RunnerEnd {
  bool answered = false;
  std::string answer;   // if it answered
  int wait_status = 0;  // else: of waitpid
};

/// Calls `body` in a fork of this process under ConfineKernels, for code that may do anything:
/// running a kernel. The process has one descriptor, for its answer; its output is discarded. It
/// ends with all its threads before this function returns, and dies with the caller. No two kernels
/// ever share a process.
///
///   ASSIGN_OR_RETURN(RunnerEnd end, CallConfined(sandbox, [&] { return Encode(Check(kernel)); }));
///
/// Waits until `body` ends, without a limit: a caller with a time limit must run in a process that
/// can be killed. The answer is untrusted: any bytes, at most kMaxWorkerMessageBytes.
/// FailedPrecondition: the confinement `sandbox` cannot be reached. ResourceExhausted: no process
/// can be started.
///
/// Only for processes without other threads, not for the service: it forks, because starting a new
/// program costs more than most checks.
absl::StatusOr<RunnerEnd> CallConfined(Sandbox sandbox, const std::function<std::string()>& body);

}  // namespace fusion
