#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Instruction set levels we generate for, lowest first.
enum class Isa : uint8_t { kX86V2, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAvx512Amx };
/// All of them, in this order.
inline constexpr std::array kIsas = {Isa::kX86V2,      Isa::kAvx2,       Isa::kAvx512,
                                     Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Amx};

/// "x86-64-v2", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "avx512-amx": tiles of bf16 and of
/// 8-bit integers, and everything before it.
std::string_view IsaName(Isa isa);
/// The lowest level with the same vectors: what is written for it runs on this one as it is.
constexpr Isa VectorLevel(Isa isa) { return isa > Isa::kAvx512 ? Isa::kAvx512 : isa; }
/// Inverse of IsaName; Unimplemented, naming the known ones, for anything else.
absl::StatusOr<Isa> ParseIsa(std::string_view name);

/// Threads a target may name: no machine has more, so whoever asks for more is mistaken or hostile.
inline constexpr int kMaxTargetThreads = 4096;

/// The machine a plan is made for, as its owner describes it. 0 and empty: unknown; 0 threads: as
/// many as the device spec says.
struct Target {
  std::string name;  // device spec to use, instead of matching
  std::string vendor;
  int family = 0;
  int model = 0;
  std::string isa;  // IsaName; may be empty if `name` is given
  std::vector<std::string> features;
  int64_t l1_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
  int threads = 1;
};

}  // namespace fusion
