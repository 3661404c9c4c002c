#pragma once

#include "absl/strings/cord.h"
#include "core/base/status.h"

namespace fusion {

/// Payload of an error that is about the server, not about the request: there is no compiler, no
/// store (FailedPrecondition), or no room on its disk (ResourceExhausted). The same request may
/// succeed on another server, or on this one later.
inline constexpr char kServerState[] = "fusion.v1/server_state";

/// `status`, which is not OK, with that payload.
inline absl::Status OfServerState(absl::Status status) {
  status.SetPayload(kServerState, absl::Cord());
  return status;
}

/// FailedPrecondition with that payload.
template <typename... Parts>
absl::Status ServerPrecondition(const Parts&... parts) {
  return OfServerState(FailedPrecondition(parts...));
}

/// Whether a status has it.
inline bool IsOfServerState(const absl::Status& status) {
  return status.GetPayload(kServerState).has_value();
}

}  // namespace fusion
