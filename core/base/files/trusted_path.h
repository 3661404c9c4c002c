#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/status.h"

namespace fusion {

/// The rights of a file as people write them: "0660".
std::string ModeText(mode_t mode);

/// OK if only root and this process's user can change the file or directory `path`, or put another
/// one in its place: it and every directory on the way to it belong to one of the two, and neither
/// group nor others may write there. A directory above it may be sticky instead, like /tmp, or be
/// written by its owner's private group: of the owner's name, with no other member, and no other
/// user's primary group. Where the system cannot list its users (LDAP, SSSD) no group is private.
/// Follows
/// symbolic links, and checks where they lie. FailedPrecondition, naming what can be written and by
/// whom; NotFound if there is no such file.
absl::Status CheckTrustedPath(const std::string& path);

/// OK if nobody else can put another file in the place of `path`, which need not exist: what
/// CheckTrustedPath says of the directories above it.
absl::Status CheckTrustedPlace(const std::string& path);

/// As CheckTrustedPath, of everything below the directory `path` too; of symbolic links there,
/// that they are trusted, not where they lead.
absl::Status CheckTrustedTree(const std::string& path);

}  // namespace fusion
