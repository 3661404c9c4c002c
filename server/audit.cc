#include "server/audit.h"

namespace fusion {

void LogAdminCall(Logger& logger, const Caller& caller, std::string_view peer,
                  std::string_view method, const absl::Status& outcome) {
  // A warning, so that no usual level leaves it out.
  logger.Warning("admin", {{"identity", caller.identity},
                           {"tenant", caller.tenant},
                           {"peer", peer},
                           {"method", method},
                           {"code", absl::StatusCodeToString(outcome.code())},
                           {"message", Message(outcome)},
                           {"trace_id", caller.trace_id}});
}

}  // namespace fusion
