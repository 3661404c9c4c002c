#include "core/device/target.h"

namespace fusion {
namespace {

constexpr std::array<std::string_view, kIsas.size()> kNames = {
    "x86-64-v2", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "avx512-amx"};

}  // namespace

std::string_view IsaName(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

absl::StatusOr<Isa> ParseIsa(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Isa>(i);
  }
  return Unimplemented("ISA ", Quote(name),
                       " is not supported; supported: ", StrJoin(kNames, ", "));
}

}  // namespace fusion
