#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "server/transport/http_connections.h"

namespace fusion {

/// What a page says.
struct HttpReply {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

/// What a path shows.
struct HttpPage {
  std::string path;   // "/metrics", or "/compile_log/" for all paths that begin so
  std::string about;  // for the index: "calls, caches and queues in Prometheus' text format"
  /// A page that is `immediate` is made on the thread that serves all connections: it must not
  /// wait, read files or take more than microseconds. Others are made on threads of their own.
  bool immediate = false;
  /// Given what stands behind `path`. Thread-safe.
  std::function<HttpReply(std::string_view rest)> make;
};

/// A small HTTP/1.1 server for GET and HEAD, made for health checks beside slow or hostile peers:
/// one thread serves all connections and waits for none of them, and HttpLimits bound what a peer
/// can hold. "/" lists the pages. One answer a connection; gzip where the client accepts it. A
/// request whose header Host is not of AllowedHosts is refused (421); one without it is answered.
///
///   ASSIGN_OR_RETURN(auto server, HttpServer::Start("127.0.0.1:0", pages));
///
/// Without access control or TLS. Thread-safe.
class HttpServer {
 public:
  /// Sends the answers of requests under way, within a second, and closes all connections.
  virtual ~HttpServer() = default;

  /// FailedPrecondition, saying why, if `address` ("host:port", port 0: any free one) cannot be
  /// listened on. `hosts`: further names of this server, see AllowedHosts.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& address, std::vector<HttpPage> pages,
      const std::vector<std::string>& hosts = {}, const HttpLimits& limits = {});

  /// With the real port where that was 0.
  virtual const std::string& address() const = 0;

  struct Counts {
    int64_t open = 0;
    int64_t late = 0;     // closed since the start: they did not ask, or read, in time
    int64_t crowded = 0;  // closed since the start: a newer one took their place
  };
  virtual Counts counts() const = 0;
};

}  // namespace fusion
