#pragma once

#include <string_view>

#include "core/base/logging.h"
#include "server/caller.h"

namespace fusion {

/// What the log keeps of each call of an operator, also of one that was refused: event "admin",
/// with identity, tenant, peer, method, code and message. Call does so for every method that needs
/// the role "admin".
///
///   {"event":"admin","identity":"ops","tenant":"default","peer":"unix:","method":"CompactStore",..}
void LogAdminCall(Logger& logger, const Caller& caller, std::string_view peer,
                  std::string_view method, const absl::Status& outcome);

}  // namespace fusion
