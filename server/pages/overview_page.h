#pragma once

#include <optional>

#include "server/observe/snapshot.h"
#include "server/pages/markup.h"
#include "server/rpc/server_status.h"

namespace fusion {

/// Counts of a server at an earlier page. Rates are computed from the differences.
struct EarlierCounts {
  Nanoseconds uptime{0};
  std::map<std::string, CodeCounts> finished;  // by method
};
EarlierCounts CountsOf(const ServerStatus& status);

/// Calls by code, cache, queue, workers, store, readiness, and the plans that take most time.
/// `before`: rates are per second since then; unset: since the start.
Markup OverviewContent(const ServerStatus& status, const ServerSnapshot& now,
                       const std::optional<EarlierCounts>& before);

/// The limits, what holds them, and what was refused.
Markup QueueContent(const ServerStatus& status, const ServerSnapshot& now);

/// Compile workers, their sandbox and compiler, kernels in quarantine, registered kernels, searches
/// for tiles. `compiler`: its version line.
Markup WorkersContent(const ServerSnapshot& now, std::string_view compiler, std::string_view isas);

}  // namespace fusion
