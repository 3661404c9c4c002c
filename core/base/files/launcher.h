#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// Resource limits that fusion-exec sets for the program it starts. 0: no limit.
struct ProcessLimits {
  int64_t cpu_seconds = 0;
  int64_t memory_bytes = 0;  // address space, per process
  int64_t file_bytes = 0;    // length of any file it writes
  int64_t open_files = 0;
};

/// What happens to a program when the process that started it dies.
enum class Orphan : uint8_t {
  kDies,          // it is killed; for programs that start no processes
  kDiesWithGroup  // it and all its descendants are killed; costs one more small process
};

/// How the kernel ranks a program when it kills processes for lack of memory.
enum class OutOfMemory : uint8_t {
  kAsAnyOther,
  kGoesFirst  // the program and its descendants are killed before the process that started it
};

/// A program that this process starts through fusion-exec.
struct Launch {
  std::string exec_path;          // bin/fusion-exec
  std::vector<std::string> argv;  // argv[0]: absolute path of the program
  ProcessLimits limits;
  Orphan orphan = Orphan::kDies;
  int last_fd = 2;  // descriptors above it are closed
  OutOfMemory out_of_memory = OutOfMemory::kAsAnyOther;
};

/// The command line of fusion-exec, which core/worker/exec_main.cc parses. Element 0 is its path.
std::vector<std::string> LauncherArgv(const Launch& launch);

/// The path of the program `name` in the directory of the running program. `name` itself if /proc
/// is not mounted.
std::string SiblingProgram(std::string_view name);

/// A status of waitpid in words: "exited with 1", "killed by signal 11 (Segmentation fault)".
std::string DescribeWaitStatus(int wait_status);

}  // namespace fusion
