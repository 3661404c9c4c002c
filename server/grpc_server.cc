#include "server/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <filesystem>

#include "server/admin_service.h"
#include "server/fusion_service.h"
#include "server/listen_address.h"
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

class RunningServer final : public GrpcServer {
 public:
  explicit RunningServer(const ServiceParts& parts)
      : parts_(parts), service_(parts_), admin_(parts_) {}
  ~RunningServer() override { Shutdown(Nanoseconds(0)); }

  absl::Status Listen(const GrpcServerOptions& options) {
    grpc::ServerBuilder builder;
    std::vector<int> ports(options.listen.size(), -1);
    for (size_t i = 0; i < options.listen.size(); ++i) {
      const std::string& address = options.listen[i];
      if (address.starts_with("unix:")) {
        RETURN_IF_ERROR(ClearUnixSocket(UnixSocketPath(address)));
      } else {
        RETURN_IF_ERROR(ParseHostPort(address).status());
      }
      builder.AddListeningPort(address, CredentialsFor(address, options.certificates), &ports[i]);
    }
    // Otherwise a second server shares the port, and nobody notices.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(TransportLimit(parts_.max_request_bytes));
    builder.SetMaxSendMessageSize(-1);
    // A megabyte of compressed zeros would be inflated in full before its size is looked at.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    builder.RegisterService(&service_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
    bool all = server_ != nullptr;
    for (int port : ports) all = all && port > 0;
    if (!all) return WhyNot(options.listen);
    for (size_t i = 0; i < ports.size(); ++i) {
      const std::string& address = options.listen[i];
      std::string path = UnixSocketPath(address);
      if (!path.empty()) chmod(path.c_str(), 0600);  // until now the umask kept others out
      addresses_.push_back(
          path.empty() ? StrCat(address.substr(0, address.rfind(':') + 1), ports[i]) : address);
    }
    SetServing(true);
    return absl::OkStatus();
  }

  const std::vector<std::string>& addresses() const override { return addresses_; }

  void SetServing(bool serving) override {
    auto* health = server_->GetHealthCheckService();
    health->SetServingStatus(v1::FusionService::service_full_name(), serving);
    health->SetServingStatus(v1::FusionAdmin::service_full_name(), serving);
    health->SetServingStatus(serving);
  }

  void Shutdown(Nanoseconds grace) override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
    server_ = nullptr;
    for (const std::string& address : addresses_) {
      std::error_code gone;
      if (address.starts_with("unix:")) {
        std::filesystem::remove(UnixSocketPath(address), gone);
      }
    }
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

  // gRPC does not say why; the system does.
  absl::Status WhyNot(const std::vector<std::string>& addresses) {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_ = nullptr;
    for (const std::string& address : addresses) RETURN_IF_ERROR(TryListening(address));
    return FailedPrecondition("cannot listen on ", StrJoin(addresses, ", "));
  }

  const ServiceParts parts_;
  FusionServiceImpl service_;
  FusionAdminImpl admin_;
  std::vector<std::string> addresses_;
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials_;
  std::unique_ptr<grpc::Server> server_;
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
