#pragma once

#include <functional>

#include "client/client.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/terminal.h"

namespace fusion {

/// Maximum number of threads that gRPC starts for a client with one connection.
inline constexpr int kThreadsOfGrpc = 12;

/// The part of a command that uses the service.
using ServiceWork = std::function<absl::StatusOr<ExitCode>(const Client& client)>;
/// Calls `work` with a client of --server, or of an embedded server that is stopped afterwards, and
/// returns its result. Fails as ConnectionOf, Client::Connect and EmbeddedServer::Start do;
/// ResourceExhausted if too few threads can be started. If the embedded server ends during `work`,
/// the error has its exit status and the end of its log.
absl::StatusOr<ExitCode> WithService(const Arguments& arguments, Progress* progress,
                                     const ServiceWork& work);

/// Requests a plan. If progress->enabled(), shows the service's progress meanwhile. Also works with
/// a service that does not report progress.
absl::StatusOr<FusionReply> PlanWithProgress(const Client& client, const FusionRequest& request,
                                             Progress* progress);

}  // namespace fusion
