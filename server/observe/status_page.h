#pragma once

#include <string>
#include <vector>

#include "core/compile/toolchain.h"
#include "server/config/config.h"
#include "server/observe/metrics.h"
#include "server/observe/snapshot.h"

namespace fusion {

/// Facts that do not change while the server runs.
struct ServerFacts {
  ServerConfig config;
  std::vector<std::string> addresses;
  std::string admin_address;
};

/// /statusz: version, configuration, addresses, toolchain with the ISAs it supports, workers and
/// their sandbox, stores, measurements, flights, calls. JSON, one object.
std::string StatusPage(const ServerFacts& facts, const Toolchain& toolchain, const Metrics& metrics,
                       const ServerSnapshot& now);

/// The ISAs for which `toolchain` can compile kernels: "x86-64-v2 avx2".
std::string SupportedIsas(const Toolchain& toolchain);

}  // namespace fusion
