#pragma once

#include <string_view>

#include "core/base/logging.h"
#include "server/access/caller.h"
#include "server/access/rpc_record.h"

namespace fusion {

/// Writes the audit line (event "admin") of one call of FusionAdmin, accepted or refused, at any
/// --log-level: identity, tenant, peer, method, number of plans and kernels that it names, the
/// caller's reason, status code and message, trace id. Call writes one for every call of a caller
/// with the role "admin". Calls of other callers are sampled like the lines "rpc", whose field
/// left_out counts the omitted ones.
///
///   {"event":"admin","identity":"ops","tenant":"default","peer":"unix:uid=0,pid=12,connection=3",
///   "method":"CompactStore",..}
void LogAdminCall(Logger& logger, const Caller& caller, std::string_view peer,
                  const RpcRecord& record);

}  // namespace fusion
