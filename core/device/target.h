#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/measured_constants.h"

namespace fusion {

/// Instruction set levels that we generate code for, lowest first. Each includes the lower ones.
enum class Isa : uint8_t { kX86V2, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAvx512Amx };
/// All of them, in this order.
inline constexpr std::array kIsas = {Isa::kX86V2,      Isa::kAvx2,       Isa::kAvx512,
                                     Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Amx};

/// "x86-64-v2", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "avx512-amx": tiles of bf16 and of
/// 8-bit integers, and everything before it.
std::string_view IsaName(Isa isa);
/// The lowest level with vectors of the same width. Vector code for it runs on `isa` unchanged.
constexpr Isa VectorLevel(Isa isa) { return isa > Isa::kAvx512 ? Isa::kAvx512 : isa; }
/// Inverse of IsaName; Unimplemented, naming the known ones, for anything else.
absl::StatusOr<Isa> ParseIsa(std::string_view name);

/// Maximum Target::threads. No machine has more, so a larger number is a mistake or an attack.
inline constexpr int kMaxTargetThreads = 4096;

/// The machine a plan is made for, as the client describes it. 0 and empty mean unknown; 0 threads:
/// the number in the device spec.
struct Target {
  std::string name;  // device spec to use; empty: match by vendor, family and model
  std::string vendor;
  int family = 0;
  int model = 0;
  std::string isa;  // IsaName; may be empty if `name` is given
  std::vector<std::string> features;
  int64_t l1_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
  int threads = 1;
  /// Constants that count instead of those of the device spec; CPUs only.
  std::optional<MeasuredConstants> measured = {};
};

}  // namespace fusion
