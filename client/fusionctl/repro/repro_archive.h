#pragma once

#include <map>
#include <string>

#include "core/base/status.h"

namespace fusion {

/// File contents by name, such as `kernels/fk_12ab.cc`.
using ReproFiles = std::map<std::string, std::string>;

/// Writes `files` as a compressed tar file; equal files give equal bytes. InvalidArgument, naming
/// the path, if it cannot be written.
absl::Status WriteReproArchive(const std::string& path, const ReproFiles& files);

/// Reads an untrusted archive into memory; writes nothing to disk. NotFound: no such file.
/// InvalidArgument: not an archive. ResourceExhausted: more than 1 GiB or 100,000 files.
absl::StatusOr<ReproFiles> ReadReproArchive(const std::string& path);

}  // namespace fusion
