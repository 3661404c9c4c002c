#pragma once

#include <string>
#include <string_view>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// Stores the compiler output of failed kernels: `<dir>/<key in hex>.log`, at most `max_files`, the
/// oldest deleted first. Thread-safe.
class CompileLogs {
 public:
  /// An empty `dir` stores nothing.
  CompileLogs(std::string dir, size_t max_files) : dir_(std::move(dir)), max_files_(max_files) {}

  /// Writes or replaces the log of `key`. Errors as MakeDirectories and WriteFile.
  absl::Status Save(const Digest& key, std::string_view text);
  /// NotFound if there is none. Else fails as ReadFile.
  absl::StatusOr<std::string> Read(const Digest& key) const;

 private:
  std::string PathOf(const Digest& key) const;
  void DeleteOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string dir_;
  const size_t max_files_;
  Mutex mutex_;  // for the files of dir_
};

}  // namespace fusion
