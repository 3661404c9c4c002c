#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "client/fusionctl/measure/contender.h"

namespace fusion {

/// One profiled run of each plan, the one of median total, as a timeline in the Trace Event Format
/// that Perfetto and chrome://tracing show: a process for each plan, an event for each launch, from
/// 0 on, with its kernel, nodes, estimate and bytes. Plans without profiled runs are empty
/// processes.
nlohmann::ordered_json TraceOf(const std::vector<const Contender*>& plans);

}  // namespace fusion
