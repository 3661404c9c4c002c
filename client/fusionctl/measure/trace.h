#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "client/fusionctl/measure/contender.h"

namespace fusion {

/// A timeline in the Trace Event Format (for Perfetto and chrome://tracing). Each plan is a process
/// that shows its profiled run of median total time; each launch is an event with kernel, nodes,
/// estimate and bytes. Times start at 0. Plans without profiled runs are empty processes.
nlohmann::ordered_json TraceOf(const std::vector<const Contender*>& plans);

}  // namespace fusion
