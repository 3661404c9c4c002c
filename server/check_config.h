#pragma once

#include <string>
#include <vector>

#include "server/config/config.h"
#include "server/daemon.h"

namespace fusion {

/// One thing that a start needs.
struct ConfigFinding {
  absl::Status status;
  bool busy = false;  // not OK, because another process has it now: this server, it may be
  std::string what;   // found where the status is OK: "--tokens /etc/tokens: 3 tokens, 1 identity"
};

/// Looks at everything that a start with `config` would need, as far as that changes nothing: no
/// address is listened on for longer than a look, no store is made or written. Runs the compiler to
/// learn what it can, and a worker to learn what confines it.
std::vector<ConfigFinding> CheckConfig(const ServerConfig& config, const Programs& programs);

}  // namespace fusion
