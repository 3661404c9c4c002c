#include "core/device/host_isa.h"

namespace fusion {

std::optional<Isa> HostIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  bool avx2 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  bool bf16 = vnni && __builtin_cpu_supports("avx512bf16");
  if (bf16) return Isa::kAvx512Bf16;
  if (vnni) return Isa::kAvx512Vnni;
  if (avx512) return Isa::kAvx512;
  if (avx2) return Isa::kAvx2;
  if (v2) return Isa::kX86V2;
#endif
  return std::nullopt;
}

bool HostRuns(Isa isa) {
  std::optional<Isa> host = HostIsa();
  return host.has_value() && *host >= isa;
}

std::string_view HostIsaName() {
  std::optional<Isa> host = HostIsa();
  return host.has_value() ? IsaName(*host) : "none of our ISA levels";
}

}  // namespace fusion
