#pragma once

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/status.h"

namespace fusion {

// The commands of fusionctl. Each prints its result to stdout (text that ends in a line end, or one
// JSON object) and returns the exit code. main prints an error to stderr and exits with ExitCodeOf.
absl::StatusOr<ExitCode> RunPlan(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunRun(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunBench(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunVerify(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunShow(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunExplain(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunDiff(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunKernels(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunExport(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunRepro(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunReport(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunTune(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunEpochs(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunProbe(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunList(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunCapabilities(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunStatus(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunTop(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunToken(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunStore(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunCompletion(const Arguments& arguments, Progress* progress);

}  // namespace fusion
