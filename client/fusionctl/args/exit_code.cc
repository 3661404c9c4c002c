#include "client/fusionctl/args/exit_code.h"

#include "client/client.h"
#include "core/base/files/server_state.h"
#include "core/base/files/unwritable.h"
#include "core/base/threads/retry_after.h"

namespace fusion {

absl::Status BadInput(const absl::Status& status) {
  if (status.ok() || ExitCodeOf(status) == kExitBadInput || IsUnwritable(status)) return status;
  return InvalidArgument(Message(status));
}

absl::Status BadFile(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? status : BadInput(status);
}

ExitCode ExitCodeOf(const absl::Status& status) {
  // A rule that forces what no kernel can be is the fault of its file, not of the service.
  if (!BlamedRules(status).empty()) return kExitBadInput;
  if (IsUnwritable(status) || IsOfServerState(status)) return kExitService;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:  // a range, a lock: trying again does not help
    case absl::StatusCode::kUnimplemented:
      return kExitBadInput;
    case absl::StatusCode::kResourceExhausted:
      if (!IsFromService(status)) return kExitNoMemory;
      // A busy service says when to come again; else the request itself is too large.
      return RetryAfterOf(status).has_value() ? kExitService : kExitBadInput;
    default:
      return kExitService;
  }
}

}  // namespace fusion
