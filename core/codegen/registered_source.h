#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/device_spec.h"

namespace fusion {

/// The C++ translation unit for a kernel that was written by hand and registered at the server: the
/// ABI, the macros FUSION_KERNEL (`symbol`), FUSION_KERNEL_DESCRIPTOR, FUSION_KERNEL_ISA and
/// FUSION_KERNEL_VECTOR_BYTES, `constants` (name, C literal) as macros, then `source` unchanged.
/// `source` defines the entry point and the descriptor under these macros. Names and literals are
/// inserted as they are: check before that they are identifiers and numbers. Pure.
std::string RegisteredSource(std::string_view source, const DeviceSpec& device,
                             std::string_view symbol,
                             const std::vector<std::pair<std::string, std::string>>& constants);

}  // namespace fusion
