#pragma once

#include <string>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// Keeps what is logged. Thread-safe.
class CapturingLogger final : public Logger {
 public:
  CapturingLogger() : Logger(LogLevel::kInfo) {}

  /// Lines so far that contain `text`.
  std::vector<std::string> LinesWith(std::string_view text) const {
    MutexLock lock(&mutex_);
    std::vector<std::string> found;
    for (const std::string& line : lines_) {
      if (line.find(text) != std::string::npos) found.push_back(line);
    }
    return found;
  }

 protected:
  void Write(LogLevel /*level*/, const std::string& members) override {
    MutexLock lock(&mutex_);
    lines_.push_back(members);
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
