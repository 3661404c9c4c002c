#include "client/fusionctl/service/session.h"

#include "client/fusionctl/service/connection.h"
#include "client/fusionctl/service/embedded_server.h"
#include "core/base/threads/shortage.h"

namespace fusion {
namespace {

constexpr Nanoseconds kStartTimeout = std::chrono::seconds(30);
// Time for the embedded server to exit after its connections were closed.
constexpr Nanoseconds kEndTimeout = std::chrono::milliseconds(500);

absl::StatusOr<std::unique_ptr<Client>> ConnectEmbedded(EmbeddedServer* server,
                                                        ClientOptions options) {
  options.wait_for_ready = true;
  options.connect_timeout = std::chrono::milliseconds(500);
  Nanoseconds end = Clock::Real().Now() + kStartTimeout;
  for (;;) {
    auto client = Client::Connect(server->address(), options);
    absl::Status health = client.ok() ? (*client)->CheckHealth(kStartTimeout) : client.status();
    if (health.ok()) return client;
    // If the server has ended, that is the better error.
    RETURN_IF_ERROR(server->CheckRunning(std::chrono::milliseconds(5)));
    if (Clock::Real().Now() >= end) return Annotate(health, "fusiond of its own");
  }
}

}  // namespace

absl::StatusOr<ExitCode> WithService(const Arguments& arguments, Progress* progress,
                                     const ServiceWork& work) {
  RETURN_IF_ERROR(CheckThreads(kThreadsOfGrpc));
  if (!arguments.server.empty()) {
    progress->Show(StrCat("connecting to ", arguments.server));
    ASSIGN_OR_RETURN(ClientOptions options, ConnectionOf(arguments));
    // Never destroyed: if no thread can be started any more, gRPC's destructors block forever.
    static auto* const kept = new std::vector<std::unique_ptr<Client>>();
    ASSIGN_OR_RETURN(kept->emplace_back(), Client::Connect(arguments.server, options));
    return work(*kept->back());
  }
  progress->Show("starting fusiond");
  ASSIGN_OR_RETURN(std::unique_ptr<EmbeddedServer> server,
                   EmbeddedServer::Start({.program = arguments.fusiond,
                                          .store = arguments.store,
                                          .store_limit_bytes = arguments.store_limit_bytes,
                                          .insecure_permissions = arguments.insecure_permissions,
                                          .import_keys = arguments.import_keys,
                                          .signing_key = arguments.signing_key,
                                          .workers = arguments.workers,
                                          .start_timeout = kStartTimeout}));
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                   ConnectEmbedded(server.get(), CallOptions(arguments)));
  absl::StatusOr<ExitCode> code = work(*client);
  if (absl::IsUnavailable(code.status())) RETURN_IF_ERROR(server->CheckRunning(kEndTimeout));
  return code;
}

absl::StatusOr<FusionReply> PlanWithProgress(const Client& client, const FusionRequest& request,
                                             Progress* progress) {
  bool compiles = request.mode != PlanMode::kPlanOnly;
  progress->Show(compiles ? "planning and compiling" : "planning");
  if (!progress->enabled()) return client.PlanFusion(request);
  absl::StatusOr<FusionReply> reply = client.PlanFusion(request, [&](const PlanProgress& at) {
    std::string elapsed = HumanMilliseconds(ToMilliseconds(at.elapsed));
    if (at.total > 0) {
      progress->Show(StrCat(elapsed, "  ", at.stage), at.done, at.total);
    } else {
      progress->Show(StrCat(elapsed, "  ", at.stage));
    }
  });
  progress->Clear();
  return reply;
}

}  // namespace fusion
