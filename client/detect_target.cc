#include "client/detect_target.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "core/base/text/text.h"
#include "core/device/host_cpu.h"
#include "core/device/host_isa.h"
#include "core/runtime/usable_cores.h"

namespace fusion {
namespace {

// What plans may come to use beyond the ISA level; as spelled in /proc/cpuinfo, which leaves out
// what the operating system does not support.
constexpr std::array<std::string_view, 8> kFeatures = {"amx_bf16",    "amx_int8",    "amx_tile",
                                                       "avx512_bf16", "avx512_fp16", "avx512_vnni",
                                                       "avx_vnni",    "f16c"};

std::vector<std::string> Features() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("flags", 0) != 0) continue;
    std::vector<std::string_view> words = StrSplit(line, ' ');
    std::vector<std::string> out;
    for (std::string_view feature : kFeatures) {
      if (std::find(words.begin(), words.end(), feature) != words.end()) out.emplace_back(feature);
    }
    return out;
  }
  return {};
}

}  // namespace

Target DetectTarget(int threads) {
  Target target = HostCpu();
  if (std::optional<Isa> isa = HostIsa()) target.isa = IsaName(*isa);
  target.features = Features();
  target.threads = threads > 0 ? threads : UsableCores();
  return target;
}

std::string DeviceName() { return HostCpuName(); }

}  // namespace fusion
