#pragma once

#include "core/base/status.h"
#include "core/base/text/text.h"

namespace fusion {

/// Errors of authentication and authorization. Only the RPC layer returns them.
template <typename... Parts>
absl::Status Unauthenticated(const Parts&... parts) {
  return absl::UnauthenticatedError(StrCat(parts...));
}
template <typename... Parts>
absl::Status PermissionDenied(const Parts&... parts) {
  return absl::PermissionDeniedError(StrCat(parts...));
}

}  // namespace fusion
