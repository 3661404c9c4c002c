#include "core/device/host_isa.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fusion {
namespace {

#if defined(__x86_64__) && defined(__linux__)

// arch_prctl of Linux 5.16 on (Documentation/arch/x86/xstate.rst), and the state component of the
// data of tiles.
constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
constexpr long kTileData = 18;

bool HasTiles() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
  constexpr unsigned kAll = kBf16 | kTile | kInt8;
  return (edx & kAll) == kAll;
}

// Requests permission to use tiles (8 KiB of state per thread) for this process: it holds for all
// its threads and forks.
bool MayUseTiles() {
  return HasTiles() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#else

bool MayUseTiles() { return false; }

#endif

std::optional<Isa> FindHostIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  bool avx2 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  bool bf16 = vnni && __builtin_cpu_supports("avx512bf16");
  if (bf16 && MayUseTiles()) return Isa::kAvx512Amx;
  if (bf16) return Isa::kAvx512Bf16;
  if (vnni) return Isa::kAvx512Vnni;
  if (avx512) return Isa::kAvx512;
  if (avx2) return Isa::kAvx2;
  if (v2) return Isa::kX86V2;
#endif
  return std::nullopt;
}

}  // namespace

std::optional<Isa> HostIsa() {
  static const std::optional<Isa> isa = FindHostIsa();
  return isa;
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
