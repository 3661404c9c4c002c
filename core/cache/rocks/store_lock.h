#pragma once

#include <memory>
#include <string>

#include "core/base/files/unique_fd.h"
#include "core/base/status.h"

namespace fusion {

/// An exclusive lock of a store, within this process too. Released with the last copy.
using StoreLock = std::shared_ptr<const UniqueFd>;

/// Creates the directory of a store and the file `<dir>.lock`, and locks the file. Does not wait.
/// FailedPrecondition, naming the holder's process id, if it is locked; ResourceExhausted or
/// Unavailable if directory or file cannot be created.
absl::StatusOr<StoreLock> LockStore(const std::string& dir);

}  // namespace fusion
