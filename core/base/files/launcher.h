#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// What fusion-exec imposes on the program it starts. 0: not limited.
struct ProcessLimits {
  int64_t cpu_seconds = 0;
  int64_t memory_bytes = 0;  // address space, per process
  int64_t file_bytes = 0;    // length of any file it writes
  int64_t open_files = 0;
};

/// What happens to a program whose starter dies.
enum class Orphan : uint8_t {
  kDies,          // it is killed; for programs that start no others
  kDiesWithGroup  // it is killed with everything it started; costs one small process more
};

/// Which processes the kernel ends where memory runs out.
enum class OutOfMemory : uint8_t {
  kAsAnyOther,
  kGoesFirst  // the program and all that it starts, before its starter
};

/// A program as fusion-exec starts it for this process.
struct Launch {
  std::string exec_path;          // bin/fusion-exec
  std::vector<std::string> argv;  // argv[0]: absolute path of the program
  ProcessLimits limits;
  Orphan orphan = Orphan::kDies;
  int last_fd = 2;  // descriptors above it are closed
  OutOfMemory out_of_memory = OutOfMemory::kAsAnyOther;
};

/// The command line of fusion-exec (core/worker/exec_main.cc reads it); begins with its path.
std::vector<std::string> LauncherArgv(const Launch& launch);

/// The path of the program `name` in the directory of the running one.
std::string SiblingProgram(std::string_view name);

/// "exited with 1", "killed by signal 11 (Segmentation fault)".
std::string DescribeWaitStatus(int wait_status);

}  // namespace fusion
