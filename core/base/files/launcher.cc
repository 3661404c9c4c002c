#include "core/base/files/launcher.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/base/text/text.h"

namespace fusion {

std::vector<std::string> LauncherArgv(const Launch& launch) {
  std::vector<std::string> argv = {launch.exec_path,
                                   launch.orphan == Orphan::kDies ? "exec" : "guard",
                                   StrCat(getpid()),
                                   StrCat(launch.last_fd),
                                   StrCat(launch.limits.cpu_seconds),
                                   StrCat(launch.limits.memory_bytes),
                                   StrCat(launch.limits.file_bytes),
                                   StrCat(launch.limits.open_files),
                                   launch.out_of_memory == OutOfMemory::kGoesFirst ? "first" : "-"};
  argv.insert(argv.end(), launch.argv.begin(), launch.argv.end());
  return argv;
}

std::string SiblingProgram(std::string_view name) {
  std::error_code error;  // without /proc: `name` as it is, whose start then fails by name
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).string();
}

std::string DescribeWaitStatus(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    int number = WTERMSIG(wait_status);
    const char* words = sigdescr_np(number);  // strsignal may share a buffer with other threads
    return StrCat("killed by signal ", number, " (", words == nullptr ? "unknown" : words, ")");
  }
  return StrCat("exited with ", WEXITSTATUS(wait_status));
}

}  // namespace fusion
