#pragma once

#include <string>
#include <vector>

#include "server/config/config.h"
#include "server/daemon.h"

namespace fusion {

/// The result of checking one resource that a start needs.
struct ConfigFinding {
  absl::Status status;
  bool busy = false;  // not OK because another process uses it now, perhaps this very server
  std::string what;   // if the status is OK: "--tokens /etc/tokens: 3 tokens, 1 identities"
};

/// Checks everything that a start with `config` needs, without lasting changes: it listens on
/// addresses only until it returns, and neither makes nor writes a store. Runs the compiler to find
/// out its ISAs and a worker to find out its sandbox level, so it takes seconds.
std::vector<ConfigFinding> CheckConfig(const ServerConfig& config, const Programs& programs);

}  // namespace fusion
