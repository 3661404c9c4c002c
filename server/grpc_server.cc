#include "server/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <atomic>
#include <climits>

#include "server/admin_service.h"
#include "server/connection_listener.h"
#include "server/fusion_service.h"
#include "server/tls_credentials.h"

namespace fusion {
namespace {

std::atomic<Logger*> g_logger{nullptr};

void ForwardLog(gpr_log_func_args* args) {
  Logger* logger = g_logger.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  LogLevel level = args->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                   : args->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                             : LogLevel::kDebug;
  logger->Log(level, "grpc", {{"message", args->message}});
}

// What gRPC refuses by itself is neither logged nor counted, and its words name no flag. So
// requests somewhat above the limit come through, to be refused by us; only what is far above it
// does not.
int TransportLimit(int64_t max_request_bytes) {
  constexpr int64_t kLeast = int64_t{4} << 20;  // gRPC's own default
  int64_t bytes = std::max(2 * max_request_bytes, kLeast);
  return static_cast<int>(std::min<int64_t>(bytes, INT_MAX));
}

// Calls of one connection at a time; more wait at the caller. Callers that do more open more.
constexpr int kMaxConcurrentStreams = 1024;
constexpr std::chrono::minutes kProbeAfter(2);
constexpr std::chrono::minutes kProbeLimit(1);

int ClampedMilliseconds(Nanoseconds time) {
  return static_cast<int>(std::min<int64_t>(time / std::chrono::milliseconds(1), INT_MAX));
}

class RunningServer final : public GrpcServer {
 public:
  explicit RunningServer(const ServiceParts& parts)
      : parts_(parts), service_(parts_), admin_(parts_) {}
  ~RunningServer() override { Shutdown(Nanoseconds(0)); }

  absl::Status Listen(const GrpcServerOptions& options) {
    ASSIGN_OR_RETURN(listener_, ConnectionListener::Open(options.listen, options.max_connections));
    grpc::ServerBuilder builder;
    for (const std::string& address : options.listen) {
      acceptors_.push_back(builder.experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
          CredentialsFor(address, options.certificates)));
    }
    builder.SetMaxReceiveMessageSize(TransportLimit(parts_.max_request_bytes));
    builder.SetMaxSendMessageSize(-1);
    // A megabyte of compressed zeros would be inflated in full before its size is looked at.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    LimitTransport(options, &builder);
    builder.RegisterService(&service_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return Internal("gRPC does not start");
    listener_->Start([this](size_t address, int listening, UniqueFd connection) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.listener_fd = listening;
      parameters.fd = connection.Release();  // gRPC's from now on
      acceptors_[address]->HandleNewConnection(&parameters);
    });
    SetServing(true);
    return absl::OkStatus();
  }

  const std::vector<std::string>& addresses() const override { return listener_->addresses(); }

  ConnectionCounts connections() const override {
    return {
        .open = listener_->open(), .limit = listener_->limit(), .refused = listener_->refused()};
  }

  void SetServing(bool serving) override {
    auto* health = server_->GetHealthCheckService();
    health->SetServingStatus(v1::FusionService::service_full_name(), serving);
    health->SetServingStatus(v1::FusionAdmin::service_full_name(), serving);
    health->SetServingStatus(serving);
  }

  void Shutdown(Nanoseconds grace) override {
    if (server_ == nullptr) return;
    listener_->Stop();  // first: gRPC takes no connections any more
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
    server_ = nullptr;
  }

 private:
  // Who may open the socket file is its own matter.
  std::shared_ptr<grpc::ServerCredentials> CredentialsFor(const std::string& address,
                                                          Certificates* certificates) {
    if (certificates == nullptr || address.starts_with("unix:")) {
      return grpc::InsecureServerCredentials();
    }
    return credentials_.emplace_back(TlsCredentials(*certificates));
  }

  // What callers can make gRPC keep before, and after, a call is ours to admit.
  static void LimitTransport(const GrpcServerOptions& options, grpc::ServerBuilder* builder) {
    // Parts of requests that never end: beyond it the connections of the largest are closed.
    grpc::ResourceQuota quota("fusiond");
    builder->SetResourceQuota(quota.Resize(static_cast<size_t>(options.transport_bytes)));
    builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentStreams);
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                                ClampedMilliseconds(options.connection_idle));
    // Who does not answer, because the machine is gone or because it does not read.
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, ClampedMilliseconds(kProbeAfter));
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ClampedMilliseconds(kProbeLimit));
  }

  const ServiceParts parts_;
  FusionServiceImpl service_;
  FusionAdminImpl admin_;
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials_;
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>> acceptors_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionListener> listener_;
};

}  // namespace

void SendGrpcLogTo(Logger& logger) {
  g_logger.store(&logger, std::memory_order_release);
  gpr_set_log_function(&ForwardLog);
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              const ServiceParts& parts) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto server = std::make_unique<RunningServer>(parts);
  RETURN_IF_ERROR(server->Listen(options));
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace fusion
