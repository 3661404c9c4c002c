#include "core/compile/process/resource_use.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

namespace fusion {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 16;
constexpr int64_t kBytesPerName = 4096;
constexpr int64_t kBytesPerBlock = 512;  // of stat, whatever the file system

}  // namespace

int64_t ProcessTable::ThreadsOf(pid_t root) {
  MutexLock lock(&mutex_);
  const Nanoseconds now = Clock::Real().Now();
  if (rows_.empty() || now - looked_ >= kAge) Look();
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, row] : rows_) children.emplace(row.parent, pid);
  int64_t threads = 0;
  // Process ids are reused, so a snapshot that takes milliseconds may contain a cycle.
  std::set<pid_t> seen;
  std::vector<pid_t> open = {root};
  while (!open.empty()) {
    const pid_t pid = open.back();
    open.pop_back();
    auto row = rows_.find(pid);
    if (row == rows_.end() || !seen.insert(pid).second) continue;
    threads += row->second.threads;
    auto [begin, end] = children.equal_range(pid);
    for (auto it = begin; it != end; ++it) open.push_back(it->second);
  }
  return threads;
}

void ProcessTable::Look() {
  rows_.clear();
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const auto pid = static_cast<pid_t>(std::atoi(it->path().filename().c_str()));
    if (pid <= 0) continue;
    std::string text;
    std::getline(std::ifstream(it->path() / "stat"), text, '\0');
    // "12 (name) S parent ..."; a name may hold anything, but no bracket comes after it.
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream words(text.substr(name_end + 1));
    Row row;
    std::string word;
    words >> word >> row.parent;
    for (int field = 5; field < 20; ++field) words >> word;
    if (words >> row.threads) rows_[pid] = row;
  }
  looked_ = Clock::Real().Now();
}

int64_t BytesBelow(const std::string& dir, int64_t enough) {
  int64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(dir, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    struct stat facts {};
    const bool there = lstat(it->path().c_str(), &facts) == 0;
    const bool hidden = !there && errno != ENOENT;  // not just gone meanwhile
    if (there) bytes += facts.st_blocks * kBytesPerBlock + kBytesPerName;
    if (hidden || it.depth() >= kMaxDepth || bytes > enough) return enough + 1;
  }
  return error == std::errc::permission_denied ? enough + 1 : bytes;
}

}  // namespace fusion
