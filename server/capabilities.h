#pragma once

#include <vector>

#include "core/bundle/report.h"
#include "core/compile/toolchain.h"
#include "core/device/device_spec.h"
#include "core/pipeline/plan_fusion.h"
#include "server/config/config.h"

namespace fusion {

/// The capabilities of a server with this configuration. Leaves `sandbox`, `registered`,
/// `authentication` and `signing_keys` empty: other parts of the server know them.
Capabilities CapabilitiesOf(const ServerConfig& config, const std::vector<DeviceSpec>& specs,
                            const Toolchain& toolchain, const PipelineOptions& pipeline);

}  // namespace fusion
