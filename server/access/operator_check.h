#pragma once

#include <string_view>

#include "server/access/authenticator.h"

namespace fusion {

/// Whether a request of HTTP may see the pages of the operator. Without --tokens every request may,
/// as on the whole admin port. With tokens, `authorization` (the header) must be "Bearer TOKEN", or
/// "Basic ..." with the token as the password and any user name, and the token must have the role
/// admin. Unauthenticated or PermissionDenied, with what was expected.
absl::Status CheckOperator(const Authenticator& authenticator, std::string_view authorization,
                           std::chrono::system_clock::time_point now);

}  // namespace fusion
