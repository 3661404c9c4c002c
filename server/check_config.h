#pragma once

#include <string>
#include <vector>

#include "server/certificates.h"
#include "server/config.h"
#include "server/daemon.h"

namespace fusion {

/// One thing that a start needs.
struct ConfigFinding {
  absl::Status status;
  std::string what;  // found where the status is OK: "--tokens /etc/tokens: 3 tokens, 1 identity"
};

/// Looks at everything that a start with `config` would need, as far as that changes nothing: no
/// address is listened on, no store is opened or made. Runs the compiler to learn what it can.
std::vector<ConfigFinding> CheckConfig(const ServerConfig& config, const Programs& programs);

/// The files of TLS that the configuration names.
CertificateFiles CertificateFilesOf(const ServerConfig& config);

}  // namespace fusion
