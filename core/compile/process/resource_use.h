#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// A snapshot of the processes in /proc, to count the threads of one worker; RLIMIT_NPROC counts
/// all processes of a user and does not bind root. A snapshot takes some milliseconds for a
/// thousand processes and is shared by all callers for kAge. Thread-safe.
class ProcessTable {
 public:
  static constexpr Nanoseconds kAge = std::chrono::milliseconds(100);

  /// Threads of process `root` and its descendants, including orphans that it adopts
  /// (PR_SET_CHILD_SUBREAPER). Dead processes count until they are reaped. 0 without /proc.
  int64_t ThreadsOf(pid_t root);

 private:
  struct Row {
    int64_t threads = 0;
    pid_t parent = 0;
  };
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  Nanoseconds looked_ ABSL_GUARDED_BY(mutex_){0};
  std::map<pid_t, Row> rows_ ABSL_GUARDED_BY(mutex_);
};

/// Disk bytes of the files below `dir`, plus a page for each name. Stops above `enough` and returns
/// a larger number. Also returns more than `enough` for anything that could hide files: a directory
/// that cannot be read, or more than 16 nested directories. Files that are open and deleted do not
/// count.
int64_t BytesBelow(const std::string& dir, int64_t enough);

}  // namespace fusion
