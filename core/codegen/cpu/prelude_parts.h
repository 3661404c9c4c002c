#pragma once

#include <string_view>
#include <vector>

namespace fusion {

/// One named part of the prelude. Internal to CpuPrelude.
struct PreludePart {
  std::string_view name;
  std::vector<std::string_view> needs;  // parts that must come before it
  std::string_view text;
};

/// Pointers that know their bounds: what stands before every load and store of a guarded unit.
std::string_view GuardTypes();
/// Loads and stores of one memory type through such pointers, with $T, $V and $N as in those of
/// plain ones; `half`: a 16-bit float.
std::string_view GuardMemory(bool half);
/// mma<> on such pointers, from its text on plain ones.
std::string GuardedProduct(std::string_view plain);

/// The forms of product operands that lie in pairs, for such pointers too.
std::string GuardedPairs(std::string_view plain);

/// The functions of f64: "exp_d", "log_d", ...
std::vector<PreludePart> DoubleParts();

}  // namespace fusion
