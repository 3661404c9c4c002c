#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/status.h"

namespace fusion {

/// The permission bits of a file in octal: "0660".
std::string ModeText(mode_t mode);

/// OK if only root and this process's user can modify or replace the file or directory `path`. It
/// and each of its parent directories must belong to one of the two, and must not be writable by
/// group or others. Exceptions for parent directories:
///   - they may be sticky, like /tmp;
///   - they may be writable by the owner's private group: it has the owner's name, no other member,
///     and is no other user's primary group. If the system cannot list its users (LDAP, SSSD), no
///     group counts as private.
/// Follows symbolic links, and checks their own directories too. FailedPrecondition, saying what is
/// writable by whom, or why a path cannot be examined; NotFound if there is no such file.
absl::Status CheckTrustedPath(const std::string& path);

/// OK if no other user can create or replace `path`, which need not exist: checks its parent
/// directories as CheckTrustedPath does.
absl::Status CheckTrustedPlace(const std::string& path);

/// CheckTrustedPath, also for everything below the directory `path`. For symbolic links below it,
/// checks their owner, not their target.
absl::Status CheckTrustedTree(const std::string& path);

}  // namespace fusion
