#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/device_spec.h"

namespace fusion {

/// The translation unit for a kernel that an operator of the server wrote: the ABI, macros for the
/// kernel's name, ISA and vector width, `constants` (name, C literal) as macros, then `source`
/// unchanged. Names and literals are inserted as they are, so the caller must have checked that
/// they are identifiers and numbers. Pure.
std::string RegisteredSource(std::string_view source, const DeviceSpec& device,
                             std::string_view symbol,
                             const std::vector<std::pair<std::string, std::string>>& constants);

}  // namespace fusion
