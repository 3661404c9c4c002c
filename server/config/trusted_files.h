#pragma once

#include <string>
#include <vector>

#include "core/bundle/rules/registered_kernel.h"
#include "server/config/config.h"

namespace fusion {

// A user who can write the store, keys, tokens or configuration of a server can make its clients
// run arbitrary code, or become its administrator. So a server does not start if other users can
// write them, unless --insecure-permissions is given.

/// One FailedPrecondition "--flag: ..." for every file or directory that `config` names and that
/// other users can write, directly or through a directory above it. Missing files are not reported.
std::vector<absl::Status> UntrustedFiles(const ServerConfig& config);

/// The same for the sources of registered kernels.
std::vector<absl::Status> UntrustedSources(const RegisteredKernels& kernels);

/// The same for one working directory of the server, given by `flag`.
absl::Status CheckTrustedWork(std::string_view flag, const std::string& directory);

}  // namespace fusion
