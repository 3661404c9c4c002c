#pragma once

#include "client/client.h"
#include "client/fusionctl/arguments.h"

namespace fusion {

/// How to speak to the service of --server: reads the files that the arguments name. Bad input,
/// naming the option, if one cannot be read.
absl::StatusOr<ClientOptions> ConnectionOf(const Arguments& arguments);

}  // namespace fusion
