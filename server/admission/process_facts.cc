#include "server/admission/process_facts.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace fusion {

int64_t ResidentBytes() {
  int64_t virtual_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

ProcessFacts ReadProcessFacts() {
  ProcessFacts facts;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    facts.cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  }
  int64_t virtual_pages = 0, resident_pages = 0;
  if (std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages) {
    facts.virtual_bytes = virtual_pages * sysconf(_SC_PAGESIZE);
    facts.resident_bytes = resident_pages * sysconf(_SC_PAGESIZE);
  }
  std::error_code error;
  for (std::filesystem::directory_iterator fds("/proc/self/fd", error), end; !error && fds != end;
       fds.increment(error)) {
    ++facts.open_fds;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.max_fds = static_cast<int64_t>(limit.rlim_cur);
  struct stat self {};
  if (stat("/proc/self", &self) == 0) {
    facts.start_unix_seconds = static_cast<double>(self.st_ctim.tv_sec);
  }
  return facts;
}

}  // namespace fusion
