#pragma once

#include "client/client.h"
#include "client/fusionctl/args/arguments.h"

namespace fusion {

/// Options for any service, embedded or not: the deadline of calls (--deadline).
ClientOptions CallOptions(const Arguments& arguments);

/// Options for the service of --server: TLS, token, keys, deadline. Reads the files of these
/// options; bad input, naming the option, if one cannot be read or is invalid.
absl::StatusOr<ClientOptions> ConnectionOf(const Arguments& arguments);

}  // namespace fusion
