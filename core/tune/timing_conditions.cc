#include "core/tune/timing_conditions.h"

#include <algorithm>

#include "core/base/status.h"

namespace fusion {

int64_t DisplacedBytes(const DeviceSpec& device, int64_t others_bytes, int64_t most) {
  int64_t bytes = 0;
  for (size_t l = 0; l + 1 < device.levels.size(); ++l) {
    const MemoryLevel& level = device.levels[l];
    const int64_t all = level.bytes * (level.shared ? 1 : device.threads);
    if (others_bytes >= all) bytes = std::max(bytes, 2 * all);
  }
  return std::min(bytes, most);
}

int64_t MostDisplacedBytes(const Target& machine) {
  const int64_t known = std::max(machine.l2_bytes * machine.threads, machine.l3_bytes);
  return known > 0 ? std::min(2 * known, kMostDisplacedBytes) : kMostDisplacedBytes;
}

std::string MachineName(const Target& machine) {
  if (machine.vendor.empty()) return "unknown";
  return StrCat(machine.vendor, " family ", machine.family, " model ", machine.model);
}

}  // namespace fusion
