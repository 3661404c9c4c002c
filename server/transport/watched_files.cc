#include "server/transport/watched_files.h"

#include <sys/stat.h>

namespace fusion {

WatchedFiles::WatchedFiles(std::vector<std::string> paths)
    : paths_(std::move(paths)), seen_(Look()) {}

bool WatchedFiles::Changed() {
  std::vector<State> now = Look();
  if (now == seen_) return false;
  seen_ = std::move(now);
  return true;
}

WatchedFiles::State WatchedFiles::StateOf(const std::string& path) {
  struct stat file {};
  if (path.empty() || stat(path.c_str(), &file) != 0) return {};
  return {.exists = true,
          .inode = file.st_ino,
          .bytes = file.st_size,
          // Of the inode: some tools give a new file the time of the old one.
          .changed_ns = file.st_ctim.tv_sec * int64_t{1000000000} + file.st_ctim.tv_nsec};
}

std::vector<WatchedFiles::State> WatchedFiles::Look() const {
  std::vector<State> out;
  for (const std::string& path : paths_) out.push_back(StateOf(path));
  return out;
}

}  // namespace fusion
