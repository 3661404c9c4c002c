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
  Nanoseconds connection_idle = std::chrono::minutes(30);  // then it is closed
  int64_t transport_bytes = int64_t{384} << 20;  // of calls and connections, in gRPC's hands
  int64_t unusual_bytes = int64_t{256} << 20;    // the limit of the MemoryGuard
  int64_t answer_bytes = int64_t{128} << 20;     // of answers that are not read yet
  /// Serves reflection: each of its calls holds a thread, and nobody is asked who he is.
  bool reflection = false;
};

struct ConnectionCounts {
  int64_t open = 0;
  int64_t limit = 0;
  int64_t refused = 0;  // since the start, as all that follow
  int64_t closed = 0;   // because of the memory they filled, of calls taken back or never ended
};

/// The listening gRPC server: FusionService, FusionAdmin, health, and reflection where that is
/// wanted. Its header knows no gRPC.
class GrpcServer {
 public:
  virtual ~GrpcServer() = default;

  /// FailedPrecondition, saying why, if an address cannot be listened on. Everything referred to
  /// outlives the server.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                           const ServiceParts& parts);

  /// As asked for, with the real port where that was 0.
  virtual const std::vector<std::string>& addresses() const = 0;

  virtual ConnectionCounts connections() const = 0;

  /// Calls whose answers were not read to the end, or not given yet.
  virtual int64_t calls() const = 0;

  /// Health of all services: SERVING or NOT_SERVING.
  virtual void SetServing(bool serving) = 0;

  /// Takes no more calls, gives those under way `grace` and cancels the rest. Returns when all have
  /// ended. A second call does nothing.
  virtual void Shutdown(Nanoseconds grace) = 0;
};

/// From now on gRPC's own words, as many as an operator can read, go to `logger`, which lives for
/// ever.
void SendGrpcLogTo(Logger& logger);

}  // namespace fusion
