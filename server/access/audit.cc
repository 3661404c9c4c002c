#include "server/access/audit.h"

#include "core/wire/basics/scalars.h"

namespace fusion {

void LogAdminCall(Logger& logger, const Caller& caller, std::string_view peer,
                  const RpcRecord& record) {
  logger.Audit("admin", {{"identity", caller.identity},
                         {"tenant", caller.tenant},
                         {"peer", peer},
                         {"method", RpcMethodName(record.method)},
                         {"keys", record.keys},
                         {"reason", TextToWire(record.reason)},
                         {"code", absl::StatusCodeToString(record.status.code())},
                         {"message", Message(record.status)},
                         {"trace_id", caller.trace_id}});
}

}  // namespace fusion
