#pragma once

#include "client/client.h"
#include "client/fusionctl/args/arguments.h"

namespace fusion {

/// What is asked of every service: how long a call may take.
ClientOptions CallOptions(const Arguments& arguments);

/// How to speak to the service of --server: reads the files that the arguments name. Bad input,
/// naming the option, if one cannot be read.
absl::StatusOr<ClientOptions> ConnectionOf(const Arguments& arguments);

}  // namespace fusion
