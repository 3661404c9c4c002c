#pragma once

#include "absl/strings/cord.h"
#include "core/base/status.h"

namespace fusion {

/// Payload of an error caused by the state of the server, not by the request: no compiler or no
/// store (FailedPrecondition), or a full disk (ResourceExhausted). The same request may succeed on
/// another server, or later on this one.
inline constexpr char kServerState[] = "fusion.v1/server_state";

/// `status`, which must not be OK, with that payload.
inline absl::Status OfServerState(absl::Status status) {
  status.SetPayload(kServerState, absl::Cord());
  return status;
}

/// FailedPrecondition with that payload.
template <typename... Parts>
absl::Status ServerPrecondition(const Parts&... parts) {
  return OfServerState(FailedPrecondition(parts...));
}

/// True if `status` has that payload.
inline bool IsOfServerState(const absl::Status& status) {
  return status.GetPayload(kServerState).has_value();
}

}  // namespace fusion
