#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Files that a confined process may still open; paths of directories stand for all below them.
/// Those that do not exist are left out.
struct LandlockRules {
  std::vector<std::string> readable;  // to read and execute
  std::vector<std::string> writable;  // anything
};

/// Refuses this process, and all that it starts from now on, every file but those of `rules`
/// (EACCES), and as far as the kernel can: TCP (version 4), and signals and abstract sockets of
/// processes outside (version 6). Needs no_new_privs. May be called again; what one call refuses
/// no later one allows.
///
/// Returns "landlock-<version>" of the kernel. FailedPrecondition if it has none.
absl::StatusOr<std::string> EnterLandlock(const LandlockRules& rules);

}  // namespace fusion
