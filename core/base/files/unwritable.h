#pragma once

#include <cerrno>

#include "absl/strings/cord.h"
#include "core/base/status.h"

namespace fusion {

/// Payload of an error of writing a file or creating a directory, if the file system is full, over
/// quota or read-only. The machine is at fault, not the request.
inline constexpr char kUnwritable[] = "fusion.v1/unwritable";

/// `status`, which must not be OK, with that payload if the errno `error` is ENOSPC, EDQUOT or
/// EROFS.
inline absl::Status WithWriteError(absl::Status status, int error) {
  if (error == ENOSPC || error == EDQUOT || error == EROFS) {
    status.SetPayload(kUnwritable, absl::Cord());
  }
  return status;
}

/// True if `status` has that payload.
inline bool IsUnwritable(const absl::Status& status) {
  return status.GetPayload(kUnwritable).has_value();
}

}  // namespace fusion
