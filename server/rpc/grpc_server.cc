#include "server/rpc/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <thread>

#include "core/base/threads/named_thread.h"
#include "server/admission/call_tracker.h"
#include "server/admission/event.h"
#include "server/admission/memory_guard.h"
#include "server/admission/rapid_reset_detector.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/fusion_service.h"
#include "server/transport/connection_listener.h"
#include "server/transport/peer.h"
#include "server/transport/tls_credentials.h"

namespace fusion {
namespace {

std::atomic<Logger*> g_logger{nullptr};
// What peers do wrong is said for each of their connections.
constexpr int64_t kLinesASecond = 20;

void ForwardLog(gpr_log_func_args* args) {
  static LogSample& sample = *new LogSample(kLinesASecond);
  Logger* logger = g_logger.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  const std::optional<int64_t> left_out = sample.Pick();
  if (!left_out.has_value()) return;
  LogLevel level = args->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                   : args->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                             : LogLevel::kDebug;
  logger->Log(level, "grpc", {{"message", args->message}, {"left_out", *left_out}});
}

// gRPC's limit of a message, at least twice --max-request-bytes. Messages that gRPC refuses are
// neither logged nor counted, and its error names no flag. So Call::Enter refuses requests up to
// this size.
int TransportLimit(int64_t max_request_bytes) {
  constexpr int64_t kLeast = int64_t{4} << 20;  // gRPC's own default
  int64_t bytes = std::max(2 * max_request_bytes, kLeast);
  return static_cast<int>(std::min<int64_t>(bytes, INT_MAX));
}

// Concurrent calls of one connection; further ones wait at the caller.
constexpr int kMaxConcurrentStreams = 1024;
// Calls that gRPC keeps for all connections: far more than run, wait and are read. With 8,192,
// calls cancelled at once took up to 550 MB on two busy cores, with 4,096 up to 360 MB (2026-11-27;
// redo: hostile_test --gtest_filter=*TakenBack* beside four busy loops).
constexpr int64_t kMostCalls = 4096;
// gRPC processes each read to its end, even if the connection is closed meanwhile. 4 MB, its
// default, may contain 25,000 cancelled calls, of 9 KB of memory each.
constexpr int kMaxReadBytes = 64 << 10;
// Concurrent calls of reflection, each on a thread of its own (1.51); further ones are refused.
constexpr int kReflectionThreads = 32;
// Time to read the answer of a call that has used its whole time limit.
constexpr std::chrono::seconds kReadingTime(5);
constexpr std::chrono::minutes kProbeAfter(2);
constexpr std::chrono::minutes kProbeLimit(1);

int ClampedMilliseconds(Nanoseconds time) {
  return static_cast<int>(std::min<int64_t>(time / std::chrono::milliseconds(1), INT_MAX));
}

// Removes reflection, which its library adds to every server of a program that links it.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins, [](const auto& plugin) { return plugin->name() == kReflection; });
  }

 private:
  static constexpr std::string_view kReflection = "proto_server_reflection";
};

class RunningServer final : public GrpcServer {
 public:
  explicit RunningServer(const ServiceParts& parts)
      : parts_(Watched(parts)), service_(parts_), admin_(parts_) {}
  ~RunningServer() override { Shutdown(Nanoseconds(0)); }

  absl::Status Listen(const GrpcServerOptions& options) {
    ASSIGN_OR_RETURN(listener_, ConnectionListener::Open(options.listen, options.max_connections,
                                                         options.socket_access));
    grpc::ServerBuilder builder;
    for (const std::string& address : options.listen) {
      acceptors_.push_back(AcceptorsFor(address, options.certificates, &builder));
    }
    builder.SetMaxReceiveMessageSize(TransportLimit(parts_.max_request_bytes));
    builder.SetMaxSendMessageSize(-1);
    // gRPC would decompress a message completely before it checks its size.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    LimitTransport(options, &builder);
    if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
    builder.RegisterService(&service_);
    builder.RegisterService(&admin_);
    auto call_tracker = std::make_unique<CallTracker>(
        CallTracker::Most{.calls = kMostCalls, .answer_bytes = options.answer_bytes},
        CallTracker::Reports{
            .too_many = [this](const std::string& peer,
                               int64_t calls) { HangUp(peer, "calls_not_ended", calls); },
            .too_much = [this](const std::string& peer,
                               int64_t bytes) { HangUp(peer, "answer_bytes_not_read", bytes); },
            .taken_back = [this](const std::string& peer) { TakenBack(peer); }});
    call_tracker_ = call_tracker.get();
    builder.SetContextAllocator(std::move(call_tracker));
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return Internal("gRPC does not start");
    listener_->Start([this](size_t address, int listening, UniqueFd connection) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      const Acceptors& to = acceptors_[address];
      const bool owner = to.of_owner != nullptr && IsOwner(connection.get());
      parameters.listener_fd = listening;
      parameters.fd = connection.Release();  // gRPC's from now on
      (owner ? to.of_owner : to.usual)->HandleNewConnection(&parameters);
    });
    guard_ = std::make_unique<MemoryGuard>(
        options.unusual_bytes,
        MemoryGuard::Reasons{.flooded = [this] { return call_tracker_->live() > kMostCalls; },
                             .cached = [this] { return CachedBytes(); },
                             .jobs = [this] { return parts_.job_memory.used_bytes(); },
                             .make_room = [this] { MakeRoom(); },
                             .requests = [this](bool begins) { return RequestBytes(begins); }},
        *listener_, parts_.logger);
    sweeper_ = NamedThread("call-sweeper", [this] { EndLateCalls(); });
    SetServing(true);
    return absl::OkStatus();
  }

  const std::vector<std::string>& addresses() const override { return listener_->addresses(); }

  ConnectionCounts connections() const override {
    return {.open = listener_->open(),
            .limit = listener_->limit(),
            .refused = listener_->refused(),
            .closed = guard_->closed() + closed_.load(std::memory_order_relaxed)};
  }

  int64_t calls() const override { return call_tracker_->begun(); }

  void SetServing(bool serving) override {
    auto* health = server_->GetHealthCheckService();
    health->SetServingStatus(v1::FusionService::service_full_name(), serving);
    health->SetServingStatus(v1::FusionAdmin::service_full_name(), serving);
    health->SetServingStatus(serving);
  }

  void Shutdown(Nanoseconds grace) override {
    if (server_ == nullptr) return;
    // Both use the call tracker, which gRPC owns.
    guard_->Stop();
    stopping_.Set();
    sweeper_.join();
    listener_->Stop();  // before gRPC, which takes no connections any more
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
    server_ = nullptr;
  }

 private:
  // `parts` with the callbacks of this server, for the services, which keep a copy.
  ServiceParts Watched(ServiceParts parts) {
    using Context = grpc::CallbackServerContext;
    parts.begins = [this](const Context& context) { call_tracker_->Add(context); };
    parts.requested = [this](const Context& context, int64_t bytes) {
      call_tracker_->AddRequest(context, bytes);
    };
    parts.answers = [this](const Context& context, const AnswerMemory& kept) {
      absl::Status room = call_tracker_->SetAnswer(context, kept);
      if (!room.ok()) parts_.admission.CountRefused(Refused::kUnread);
      return room;
    };
    parts.lasts = [this](const Context& context) { call_tracker_->SetLasting(context); };
    return parts;
  }

  // Acceptors for the connections of an address. gRPC does not tell to which connection a call
  // belongs. So connections of this server's owner get separate credentials, which each call has as
  // a property (kOwnerTransport).
  struct Acceptors {
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> usual;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> of_owner;  // of unix sockets
  };

  Acceptors AcceptorsFor(const std::string& address, Certificates* certificates,
                         grpc::ServerBuilder* builder) {
    auto add = [builder](std::shared_ptr<grpc::ServerCredentials> credentials) {
      return builder->experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
          std::move(credentials));
    };
    if (address.starts_with("unix:")) {
      return {.usual = add(grpc::InsecureServerCredentials()),
              .of_owner = add(grpc::experimental::LocalServerCredentials(UDS))};
    }
    if (certificates == nullptr) return {.usual = add(grpc::InsecureServerCredentials())};
    return {.usual = add(credentials_.emplace_back(TlsCredentials(*certificates)))};
  }

  // Bounds the memory that callers can make gRPC keep before a call is admitted and after it ends.
  static void LimitTransport(const GrpcServerOptions& options, grpc::ServerBuilder* builder) {
    // Parts of requests that never end: beyond it the connections of the largest are closed.
    grpc::ResourceQuota quota("fusiond");
    quota.Resize(static_cast<size_t>(options.transport_bytes));
    builder->SetResourceQuota(quota.SetMaxThreads(kReflectionThreads));
    builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentStreams);
    builder->AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadBytes);
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                                ClampedMilliseconds(options.connection_idle));
    // Closes connections whose peer does not answer: it is gone, or does not read.
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, ClampedMilliseconds(kProbeAfter));
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ClampedMilliseconds(kProbeLimit));
  }

  void TakenBack(const std::string& peer) {
    if (rapid_resets_.Note(peer))
      HangUp(peer, "calls_taken_back", RapidResetDetector::kMostTakenBack);
  }

  int64_t CachedBytes() const {
    return parts_.store.CachedBytes() + parts_.warm.bytes() + parts_.pipeline.recalled_bytes() +
           parts_.pipeline.remembered_bytes();
  }

  // An evicted entry costs time if it is needed again; a job without memory fails.
  void MakeRoom() {
    parts_.store.TrimMemory();
    parts_.warm.MakeRoom();
    parts_.pipeline.MakeRoom();
  }

  ConnectionListener::BytesByPeer RequestBytes(bool begins) {
    ConnectionListener::BytesByPeer out;
    for (const auto& [peer, bytes] : call_tracker_->RequestBytes(begins))
      out[PlainPeer(peer)] += bytes;
    return out;
  }

  void EndLateCalls() {
    while (!stopping_.WaitFor(std::chrono::seconds(1))) {
      const int64_t ended = call_tracker_->EndOlderThan(parts_.call_limit + kReadingTime);
      if (ended > 0) parts_.logger.Warning("late_calls_ended", {{"calls", ended}});
    }
  }

  void HangUp(const std::string& peer, std::string_view why, int64_t amount) {
    if (!listener_->Close(PlainPeer(peer))) return;
    closed_.fetch_add(1, std::memory_order_relaxed);
    parts_.logger.Warning("connection_closed", {{"peer", PlainPeer(peer)}, {why, amount}});
  }

  const ServiceParts parts_;
  RapidResetDetector rapid_resets_;
  CallTracker* call_tracker_ = nullptr;  // gRPC's
  std::atomic<int64_t> closed_{0};
  FusionServiceImpl service_;
  FusionAdminImpl admin_;
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials_;
  std::vector<Acceptors> acceptors_;  // by address
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionListener> listener_;
  std::unique_ptr<MemoryGuard> guard_;
  Event stopping_;
  std::thread sweeper_;
};

}  // namespace

void SendGrpcLogTo(Logger& logger) {
  g_logger.store(&logger, std::memory_order_release);
  gpr_set_log_function(&ForwardLog);
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              const ServiceParts& parts) {
  grpc::EnableDefaultHealthCheckService(true);
  // Also makes the linker keep the reflection library.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto server = std::make_unique<RunningServer>(parts);
  RETURN_IF_ERROR(server->Listen(options));
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace fusion
