#pragma once

#include <cerrno>

#include "absl/strings/cord.h"
#include "core/base/status.h"

namespace fusion {

/// Payload of an error of writing a file or making a directory: its file system is full, over its
/// quota, or read-only. That is a fault of the machine, not of the request.
inline constexpr char kUnwritable[] = "fusion.v1/unwritable";

/// `status`, which is not OK, with that payload if the errno `error` says so.
inline absl::Status WithWriteError(absl::Status status, int error) {
  if (error == ENOSPC || error == EDQUOT || error == EROFS) {
    status.SetPayload(kUnwritable, absl::Cord());
  }
  return status;
}

/// Whether a status has it.
inline bool IsUnwritable(const absl::Status& status) {
  return status.GetPayload(kUnwritable).has_value();
}

}  // namespace fusion
