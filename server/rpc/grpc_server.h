#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/rpc/service_parts.h"
#include "server/transport/certificates.h"
#include "server/transport/listen_address.h"

namespace fusion {

struct GrpcServerOptions {
  std::vector<std::string> listen;       // "host:port", "unix:/path"
  SocketAccess socket_access;            // of every "unix:/path"
  Certificates* certificates = nullptr;  // of every "host:port"; null: no TLS
  int64_t max_connections = 16384;
  Nanoseconds connection_idle = std::chrono::minutes(30);  // without a call: then it is closed
  int64_t transport_bytes = int64_t{384} << 20;            // of calls and connections, inside gRPC
  int64_t unusual_bytes = int64_t{256} << 20;              // the limit of MemoryGuard
  int64_t answer_bytes = int64_t{128} << 20;               // of unread answers (CallTracker)
  /// Serves reflection. It is unauthenticated, and each of its calls occupies a thread.
  bool reflection = false;
};

struct ConnectionCounts {
  int64_t open = 0;
  int64_t limit = 0;
  int64_t refused = 0;  // since the start: closed at once
  int64_t closed = 0;   // since the start: by MemoryGuard, CallTracker or RapidResetDetector
};

/// The listening gRPC server: FusionService, FusionAdmin, health, and optionally reflection. This
/// header includes no gRPC header. Thread-safe, but do not call calls() or SetServing once Shutdown
/// has begun. The destructor calls Shutdown without grace.
class GrpcServer {
 public:
  virtual ~GrpcServer() = default;

  /// Serves when it returns. Fails as ConnectionListener::Open does; Internal if gRPC does not
  /// start. Everything that the arguments refer to must outlive the server.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                           const ServiceParts& parts);

  /// As given in the options, with the actual ports.
  virtual const std::vector<std::string>& addresses() const = 0;

  virtual ConnectionCounts connections() const = 0;

  /// Number of calls whose answers are not completely read by their callers.
  virtual int64_t calls() const = 0;

  /// Sets the health of all services: SERVING or NOT_SERVING.
  virtual void SetServing(bool serving) = 0;

  /// Refuses new calls, waits up to `grace` for running ones and cancels the rest. Returns when all
  /// have ended. Idempotent.
  virtual void Shutdown(Nanoseconds grace) = 0;
};

/// Sends gRPC's own log messages to `logger`, at a limited rate. `logger` must live until the
/// process ends.
void SendGrpcLogTo(Logger& logger);

}  // namespace fusion
