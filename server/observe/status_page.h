#pragma once

#include <string>
#include <vector>

#include "core/compile/toolchain.h"
#include "server/config/config.h"
#include "server/observe/metrics.h"
#include "server/observe/snapshot.h"

namespace fusion {

/// What does not change while the server runs.
struct ServerFacts {
  ServerConfig config;
  std::vector<std::string> addresses;
  std::string admin_address;
};

/// /statusz: version, configuration, addresses, toolchain with the ISAs it supports, workers and
/// their sandbox, stores, measurements, flights, calls. JSON, one object.
std::string StatusPage(const ServerFacts& facts, const Toolchain& toolchain, const Metrics& metrics,
                       const ServerSnapshot& now);

/// "x86-64-v2 avx2": the ISAs that `toolchain` makes kernels for.
std::string SupportedIsas(const Toolchain& toolchain);

}  // namespace fusion
