#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "server/transport/http_connections.h"

namespace fusion {

/// The answer to a request for a page.
struct HttpReply {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

/// A page of an HttpServer.
struct HttpPage {
  std::string path;   // "/metrics", or "/compile_log/" for all paths with this prefix
  std::string about;  // for the index: "calls, caches and queues in Prometheus' text format"
  /// An immediate page is made on the thread that serves all connections: it must not block, read
  /// files or take more than microseconds. Other pages are made on separate threads.
  bool immediate = false;
  /// `rest`: the part of the requested path behind `path`. Must be thread-safe.
  std::function<HttpReply(std::string_view rest)> make;
};

/// A small HTTP/1.1 server for GET and HEAD whose health checks work despite slow or hostile peers:
/// one thread serves all connections without blocking on any, and HttpLimits bound the connections
/// of a peer. "/" lists the pages. One answer per connection; gzip if the client accepts it. A
/// request whose header Host AllowedHosts rejects gets 421; a request without Host is answered.
///
///   ASSIGN_OR_RETURN(auto server, HttpServer::Start("127.0.0.1:0", pages));
///
/// No access control, no TLS. Thread-safe.
class HttpServer {
 public:
  /// Sends the answers of running requests for at most a second, then closes all connections.
  virtual ~HttpServer() = default;

  /// Listens on `address`, "host:port" (port 0: any free one). InvalidArgument if it is malformed;
  /// FailedPrecondition, with the reason, if listening fails. `hosts`: further names of this
  /// server, see AllowedHosts.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& address, std::vector<HttpPage> pages,
      const std::vector<std::string>& hosts = {}, const HttpLimits& limits = {});

  /// As given to Start, with the actual port.
  virtual const std::string& address() const = 0;

  struct Counts {
    int64_t open = 0;
    int64_t late = 0;     // closed since the start because a time of HttpLimits was exceeded
    int64_t crowded = 0;  // closed since the start in favour of a newer connection
  };
  virtual Counts counts() const = 0;
};

}  // namespace fusion
