#pragma once

#include <sys/types.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace fusion {

/// A field of a process's status, in bytes: "VmRSS", "VmHWM". -1 if it is gone.
inline int64_t MemoryOf(pid_t pid, const std::string& field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  }
  return -1;
}

}  // namespace fusion
