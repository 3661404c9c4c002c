#pragma once

#include "absl/strings/cord.h"
#include "core/base/status.h"

namespace fusion {

/// Payload of a FailedPrecondition that is about the server, not about the request: there is no
/// compiler, or no store. The same request may succeed on another server, or on this one later.
inline constexpr char kServerState[] = "fusion.v1/server_state";

/// FailedPrecondition with that payload.
template <typename... Parts>
absl::Status ServerPrecondition(const Parts&... parts) {
  absl::Status status = FailedPrecondition(parts...);
  status.SetPayload(kServerState, absl::Cord());
  return status;
}

/// Whether a status has it.
inline bool IsOfServerState(const absl::Status& status) {
  return status.GetPayload(kServerState).has_value();
}

}  // namespace fusion
