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

/// The functions of f64: "exp_d", "log_d", ...
std::vector<PreludePart> DoubleParts();

}  // namespace fusion
