#pragma once

#include <functional>

#include "client/client.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/terminal.h"

namespace fusion {

/// Threads that gRPC may start for a client of one connection.
inline constexpr int kThreadsOfGrpc = 12;

/// What a command does with the service.
using ServiceWork = std::function<absl::StatusOr<ExitCode>(const Client& client)>;
/// Does it with the service of --server, or with an embedded one that ends afterwards. An error
/// that comes from the end of the embedded server says how that ended.
absl::StatusOr<ExitCode> WithService(const Arguments& arguments, Progress* progress,
                                     const ServiceWork& work);

/// Asks for a plan; where `progress` is seen it says how far the service is, else the answer is all
/// there is. A service too old to say so is asked plainly.
absl::StatusOr<FusionReply> PlanWithProgress(const Client& client, const FusionRequest& request,
                                             Progress* progress);

}  // namespace fusion
