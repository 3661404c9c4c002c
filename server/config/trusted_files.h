#pragma once

#include <string>
#include <vector>

#include "core/bundle/rules/registered_kernel.h"
#include "server/config/config.h"

namespace fusion {

// Whoever can write the store, the keys, the tokens or the configuration of a server can have its
// clients run code of his, or be its administrator. So a server does not start where others can
// write them, unless --insecure-permissions is given.

/// A FailedPrecondition "--flag: ..." for every file and directory that `config` names and others
/// can write, the directories above them included. What is not there is nobody's.
std::vector<absl::Status> UntrustedFiles(const ServerConfig& config);

/// The same for the sources of registered kernels.
std::vector<absl::Status> UntrustedSources(const RegisteredKernels& kernels);

/// The same for a directory in which the server works, of the flag `flag`.
absl::Status CheckTrustedWork(std::string_view flag, const std::string& directory);

}  // namespace fusion
