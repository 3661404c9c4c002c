#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Files that a confined process may still open; a directory includes everything below it. Missing
/// paths are ignored.
struct LandlockRules {
  std::vector<std::string> readable;  // to read and execute
  std::vector<std::string> writable;  // anything
};

/// Denies this process and all its later descendants every file outside `rules` (EACCES). If the
/// kernel supports it, also denies TCP (landlock version 4), and signals and abstract sockets of
/// processes outside (version 6). Needs no_new_privs. Repeated calls only restrict further.
///
/// Returns "landlock-<version>" of the kernel. FailedPrecondition if it has none.
absl::StatusOr<std::string> EnterLandlock(const LandlockRules& rules);

}  // namespace fusion
