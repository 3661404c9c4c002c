#pragma once

#include <string>

#include "core/base/status.h"
#include "core/base/threads/retry_after.h"

namespace fusion {

/// Serialises the payloads of an error (kBlamedRules, kRetryAfter, kServerState, kUnwritable) as a
/// v1::ErrorStatus; empty if there are none. Of kBlamedRules the first 8 names are sent.
/// kRetryAfter becomes a google.rpc.RetryInfo. kServerState and kUnwritable (a full disk, for
/// example) become a google.rpc.PreconditionFailure with a violation of type "SERVER". Clients of
/// every language know these two messages.
std::string EncodeErrorDetails(const absl::Status& status);

/// Sets the payloads of `status`, an error, from the result of EncodeErrorDetails. Code
/// and message stay. A "SERVER" violation becomes kServerState, also if it was kUnwritable; delays
/// are cut to one day. Malformed bytes and unknown details are ignored.
void DecodeErrorDetails(const std::string& bytes, absl::Status* status);

}  // namespace fusion
