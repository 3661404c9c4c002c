#include "core/cache/rocks/disk_entries.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace fusion {

namespace fs = std::filesystem;

Family FamilyOf(EntryKind kind) {
  return kind == EntryKind::kPlan ? Family::kPlans : Family::kKernels;
}

std::vector<Digest> KernelsOf(const Plan& plan) {
  std::vector<Digest> keys;
  for (const PlanKernel& kernel : plan.kernels) keys.push_back(kernel.key);
  return keys;
}

// RocksDB's own properties omit its write-ahead log, which has the newest bundles.
int64_t DiskBytes(const std::string& dir) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    struct stat file = {};
    // RocksDB preallocates files: count only what is written.
    if (stat(it->path().c_str(), &file) == 0) {
      bytes += std::min<int64_t>(file.st_size, int64_t{file.st_blocks} * 512);
    }
  }
  return bytes;
}

}  // namespace fusion
