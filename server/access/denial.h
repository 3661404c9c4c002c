#pragma once

#include "core/base/status.h"
#include "core/base/text/text.h"

namespace fusion {

/// Errors about who calls, which only the border of the service has: nobody knows him, or he may
/// not.
template <typename... Parts>
absl::Status Unauthenticated(const Parts&... parts) {
  return absl::UnauthenticatedError(StrCat(parts...));
}
template <typename... Parts>
absl::Status PermissionDenied(const Parts&... parts) {
  return absl::PermissionDeniedError(StrCat(parts...));
}

}  // namespace fusion
