#pragma once

#include <string>

#include "core/base/status.h"
#include "core/base/threads/retry_after.h"

namespace fusion {

/// What an error says beside code and message (kBlamedRules, kRetryAfter, kServerState,
/// kUnwritable), as the bytes of a v1::ErrorStatus; empty if it says nothing. The delay is a
/// google.rpc.RetryInfo. A state of the server, such as a full disk, is a
/// google.rpc.PreconditionFailure with a violation of type "SERVER". Clients of every language know
/// both.
std::string EncodeErrorDetails(const absl::Status& status);

/// Inverse of EncodeErrorDetails: sets the payloads of `status`. Of bytes that are none, and of
/// what only a newer server says, nothing.
void DecodeErrorDetails(const std::string& bytes, absl::Status* status);

}  // namespace fusion
