#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/device_spec.h"

namespace fusion {

/// The unit that is compiled for a kernel which people wrote: the ABI, what it is called, its
/// constants (name, literal of C), then `source` as it stands. Names and literals are identifiers
/// and numbers that somebody has checked. Pure.
std::string RegisteredSource(std::string_view source, const DeviceSpec& device,
                             std::string_view symbol,
                             const std::vector<std::pair<std::string, std::string>>& constants);

}  // namespace fusion
