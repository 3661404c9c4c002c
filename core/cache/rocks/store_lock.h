#pragma once

#include <memory>
#include <string>

#include "core/base/files/unique_fd.h"
#include "core/base/status.h"

namespace fusion {

/// Keeps every other process, and this one, out of a store as long as somebody has it.
using StoreLock = std::shared_ptr<const UniqueFd>;

/// Creates the directory of a store, and its neighbour `<dir>.lock`, and locks that.
/// FailedPrecondition, naming the process, if another has it; ResourceExhausted, Unavailable: it
/// cannot be created.
absl::StatusOr<StoreLock> LockStore(const std::string& dir);

}  // namespace fusion
