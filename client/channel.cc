#include "client/channel.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "core/base/text/text.h"

namespace fusion {
namespace {

std::string ServiceConfig(int attempts) {
  if (attempts < 2) return "{}";
  // A report that was stored and not answered would count twice: its own entry has no retries.
  return StrCat(R"({"methodConfig":[{"name":[{"service":"fusion.v1.FusionService"}],)",
                R"("retryPolicy":{"maxAttempts":)", std::min(attempts, 5),
                R"(,"initialBackoff":"0.1s","maxBackoff":"2s","backoffMultiplier":2,)",
                R"("retryableStatusCodes":["UNAVAILABLE"]}},)",
                R"({"name":[{"service":"fusion.v1.FusionService","method":"ReportLatency"},)",
                R"({"service":"fusion.v1.FusionService","method":"ReportLatencies"}]}]})");
}

// gRPC 1.51 ends its event engine with the last channel, and now and then waits for ever for the
// engine's timer threads (PosixEventEngine::~PosixEventEngine; seen in a fusionctl that had printed
// its result). An unused channel keeps the engine until the process ends.
void KeepEventEngine() {
  [[gnu::used]] static const auto* const kKept = new std::shared_ptr<grpc::Channel>(
      grpc::CreateChannel("unix:", grpc::InsecureChannelCredentials()));
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ClientOptions& options) {
  KeepEventEngine();
  auto limit = static_cast<int>(std::min<int64_t>(options.max_message_bytes, INT32_MAX));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(limit);
  arguments.SetMaxSendMessageSize(limit);
  arguments.SetServiceConfigJSON(ServiceConfig(options.attempts));
  // A client that starts beside its server must not sit out gRPC's second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  if (options.own_connection) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!options.tls.has_value()) {
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  const ClientTls& tls = *options.tls;
  if (!tls.server_name.empty()) arguments.SetSslTargetNameOverride(tls.server_name);
  return grpc::CreateCustomChannel(
      address, grpc::SslCredentials({tls.ca, tls.key, tls.certificate}), arguments);
}

}  // namespace fusion
