#pragma once

#include <string>
#include <vector>

#include "client/fusionctl/output/print.h"
#include "core/bundle/measured/accuracy.h"

namespace fusion {

/// For `fusionctl report --accuracy`: a section for each device.
std::string AccuracyText(const std::vector<DeviceAccuracy>& devices);
Json AccuracyJson(const DeviceAccuracy& device);

}  // namespace fusion
