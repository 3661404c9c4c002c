#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// The processes of this machine as /proc shows them, to count those of one worker: RLIMIT_NPROC
/// counts all of a user, and bounds no root. Cheap to ask: one look, some milliseconds where there
/// are a thousand processes, serves everybody for kAge. Thread-safe.
class ProcessTable {
 public:
  static constexpr Nanoseconds kAge = std::chrono::milliseconds(100);

  /// Threads of process `root` and of all that it started, orphans too if it is where they go
  /// (PR_SET_CHILD_SUBREAPER). Dead ones count until they are reaped. 0 without /proc.
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

/// What the files below `dir` take of its disk, a page for each name included; more than `enough`
/// for anything above that, without looking further, and for what nobody needs and that would hide
/// files: a directory that cannot be read, or more than 16 inside each other. Files that are open
/// and deleted do not count.
int64_t BytesBelow(const std::string& dir, int64_t enough);

}  // namespace fusion
