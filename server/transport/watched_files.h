#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fusion {

/// Detects changes of files by inode, size and change time (ctime). So both a rename over a file
/// and a write into it are noticed. Empty paths are skipped. Not thread-safe.
class WatchedFiles {
 public:
  explicit WatchedFiles(std::vector<std::string> paths);

  /// True if a file has changed since the last call, or since construction.
  bool Changed();

 private:
  struct State {
    bool exists = false;
    ino_t inode = 0;
    off_t bytes = 0;
    int64_t changed_ns = 0;
    bool operator==(const State&) const = default;
  };
  static State StateOf(const std::string& path);
  std::vector<State> Look() const;

  const std::vector<std::string> paths_;
  std::vector<State> seen_;
};

}  // namespace fusion
