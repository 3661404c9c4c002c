#pragma once

#include <map>
#include <string>

#include "core/base/status.h"

namespace fusion {

/// Files by name, as `kernels/fk_12ab.cc`.
using ReproFiles = std::map<std::string, std::string>;

/// Writes them as a compressed tar file that is the same for equal files. InvalidArgument, naming
/// the path, if it cannot be written.
absl::Status WriteReproArchive(const std::string& path, const ReproFiles& files);

/// Reads such a file of a stranger into memory; nothing is unpacked to disk. NotFound if there is
/// none; InvalidArgument for what is no archive; ResourceExhausted for more than 1 GiB or 100,000
/// files.
absl::StatusOr<ReproFiles> ReadReproArchive(const std::string& path);

}  // namespace fusion
