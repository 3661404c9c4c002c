#pragma once

#include <functional>
#include <string>

#include "core/compile/sandbox/sandbox.h"

namespace fusion {

/// How a call in a process of its own ended.
struct RunnerEnd {
  bool answered = false;
  std::string answer;   // if it answered
  int wait_status = 0;  // if not: of the process
};

/// Calls `body` in a fork of this process under ConfineKernels, for code that may do anything: run
/// a kernel. The process has a descriptor for its answer and no other; its output goes nowhere; it
/// is gone, with all its threads, when this returns, and dies with the caller. No two kernels ever
/// meet in one process.
///
///   ASSIGN_OR_RETURN(RunnerEnd end, CallConfined(sandbox, [&] { return Encode(Check(kernel)); }));
///
/// Waits as long as `body` takes: who must not wait has this process killed. The answer comes from
/// behind the fence: it may be any bytes, at most kMaxWorkerMessageBytes. FailedPrecondition: it
/// cannot be confined as `sandbox` says. ResourceExhausted: no process can be started. For a
/// process without other threads, not for the service: it forks, because starting a program anew
/// costs more than most checks.
absl::StatusOr<RunnerEnd> CallConfined(Sandbox sandbox, const std::function<std::string()>& body);

}  // namespace fusion
