#pragma once

#include <string_view>

#include "core/base/logging.h"
#include "server/access/caller.h"
#include "server/access/rpc_record.h"

namespace fusion {

/// What the log keeps of each call of an operator, also of one that was refused, and whatever
/// --log-level says: event "admin", with identity, tenant, peer, method, how many plans and kernels
/// it is about, the operator's own reason, code and message. Call does so for every method that
/// needs the role "admin"; of calls by who does not have it for as many as get a line "rpc", which
/// counts those that are left out.
///
///   {"event":"admin","identity":"ops","tenant":"default","peer":"unix:uid=0,pid=12,connection=3",
///   "method":"CompactStore",..}
void LogAdminCall(Logger& logger, const Caller& caller, std::string_view peer,
                  const RpcRecord& record);

}  // namespace fusion
