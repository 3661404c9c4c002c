// What one kernel costs the compile workers, end to end: queue, worker, compiler, linker, check.
//
//   compile_latency WORKER_DIR COMPILER JOBS FILE...
//
// WORKER_DIR holds fusion-worker and fusion-exec. FILE: C++ without includes, compiled JOBS times
// for AVX-512, first one by one, then all at once on two workers; a kernel descriptor is added to
// it. Times in ms.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/files/file.h"
#include "core/compile/worker_pool.h"
#include "tests/support/kernel_source.h"

namespace fusion {
namespace {

struct Times {
  std::vector<double> wall_ms;
  std::vector<double> compile_ms;
  std::vector<double> check_ms;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double Since(Nanoseconds start) { return ToMilliseconds(Clock::Real().Now() - start); }

CompileJob Job(const std::string& source, int i) {
  CompileJob job;
  job.full_key = StrCat(i);
  job.key = Sha256(job.full_key);
  job.symbol = "fk_bench";
  job.backend = "cpu";
  job.source = StrCat(source, TestKernelText("fk_bench", "avx512"));
  job.isa = Isa::kAvx512;
  return job;
}

absl::Status Measure(WorkerPool& pool, const std::string& path, int jobs) {
  ASSIGN_OR_RETURN(std::string source, ReadFile(path, 1 << 24));
  CancelToken token;
  Times times;
  size_t binary_bytes = 0;
  for (int i = 0; i < jobs; ++i) {
    Nanoseconds start = Clock::Real().Now();
    ASSIGN_OR_RETURN(auto ticket, pool.Submit(Job(source, i)));
    ASSIGN_OR_RETURN(auto kernel, ticket->Wait(token));
    times.wall_ms.push_back(Since(start));
    times.compile_ms.push_back(kernel->compile_ms);
    times.check_ms.push_back(kernel->check_ms);
    binary_bytes = kernel->binary.size();
  }
  Nanoseconds start = Clock::Real().Now();
  std::vector<std::shared_ptr<CompileTicket>> tickets;
  for (int i = 0; i < jobs; ++i) {
    ASSIGN_OR_RETURN(auto ticket, pool.Submit(Job(source, i)));
    tickets.push_back(ticket);
  }
  for (const auto& ticket : tickets) RETURN_IF_ERROR(ticket->Wait(token).status());
  std::printf(
      "%-24s %8zu B  wall %7.1f  compile+link %7.1f  check %6.2f  two workers %7.1f a job\n",
      path.substr(path.rfind('/') + 1).c_str(), binary_bytes, Median(times.wall_ms),
      Median(times.compile_ms), Median(times.check_ms), Since(start) / jobs);
  return absl::OkStatus();
}

absl::Status Main(const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(TempDir scratch, TempDir::Create("/tmp", "compile-latency-"));
  auto runner = MakeProcessRunner(arguments[0] + "/fusion-exec");
  ToolchainOptions options;
  options.compiler = arguments[1];
  options.scratch_dir = scratch.path();
  Nanoseconds start = Clock::Real().Now();
  ASSIGN_OR_RETURN(Toolchain toolchain, Toolchain::Open(options, *runner));
  std::printf("%s: opened in %.0f ms\n", toolchain.version().c_str(), Since(start));
  WorkerProcessOptions process;
  process.worker_path = arguments[0] + "/fusion-worker";
  process.exec_path = arguments[0] + "/fusion-exec";
  process.scratch_dir = scratch.path();
  WorkerPoolOptions pool_options;
  pool_options.workers = 2;
  WorkerPool pool(pool_options, toolchain, MakeWorkerStarter(process), Logger::Silent());
  for (size_t i = 3; i < arguments.size(); ++i) {
    RETURN_IF_ERROR(Measure(pool, arguments[i], std::atoi(arguments[2].c_str())));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 4 || std::atoi(argv[3]) < 1) {
    std::fprintf(stderr, "usage: compile_latency WORKER_DIR COMPILER JOBS FILE...\n");
    return 2;
  }
  absl::Status status = fusion::Main(arguments);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(fusion::Message(status)).c_str());
  return status.ok() ? 0 : 1;
}
