#include "core/compile/compile_logs.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/base/files/file.h"

namespace fusion {
namespace {

// Logs are bounded where they are made; this only protects the reader.
constexpr int64_t kMaxLogBytes = 16 << 20;

}  // namespace

std::string CompileLogs::PathOf(const Digest& key) const {
  return StrCat(dir_, "/", key.ToHex(), ".log");
}

absl::Status CompileLogs::Save(const Digest& key, std::string_view text) {
  if (dir_.empty()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(MakeDirectories(dir_));
  RETURN_IF_ERROR(WriteFile(PathOf(key), text));
  DeleteOldest();
  return absl::OkStatus();
}

absl::StatusOr<std::string> CompileLogs::Read(const Digest& key) const {
  if (dir_.empty()) return NotFound("compile logs are not kept");
  return ReadFile(PathOf(key), kMaxLogBytes);
}

void CompileLogs::DeleteOldest() {
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator it(dir_, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".log")
      files.emplace_back(it->last_write_time(error), it->path());
  }
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i + max_files_ < files.size(); ++i) fs::remove(files[i].second, error);
}

}  // namespace fusion
