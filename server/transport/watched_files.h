#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fusion {

/// Says when one of some files has become another one: by inode, size and time of change, so that
/// both a rename over it and a write into it are seen. Empty paths are skipped. Not thread-safe.
class WatchedFiles {
 public:
  explicit WatchedFiles(std::vector<std::string> paths);

  /// True if something is different since the last call, or since the constructor.
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
