#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "server/transport/http_connections.h"

namespace fusion {

/// A request for a page.
struct HttpQuestion {
  std::string rest;                          // the part of the requested path behind HttpPage::path
  std::string authorization;                 // the header of this name; empty: there is none
  std::map<std::string, std::string> query;  // "?after=1" of the URL; the last one of a name counts
};

/// The answer to a request for a page.
struct HttpReply {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};

/// A page of an HttpServer.
struct HttpPage {
  std::string path;   // "/metrics", or "/compile_log/" for all paths with this prefix; "/": itself
  std::string about;  // for the index: "calls, caches and queues in Prometheus' text format"
  /// An immediate page is made on the thread that serves all connections: it must not block, read
  /// files or take more than microseconds. Other pages are made on separate threads.
  bool immediate = false;
  /// Must be thread-safe.
  std::function<HttpReply(const HttpQuestion& asked)> make;
};

/// A small HTTP/1.1 server for GET and HEAD whose health checks work despite slow or hostile peers:
/// one thread serves all connections without blocking on any, and HttpLimits bound the connections
/// of a peer. "/" lists the pages, unless one of them is "/". One answer per connection; gzip if
/// the client accepts it. A request whose header Host AllowedHosts rejects gets 421; a request
/// without Host is answered.
///
///   ASSIGN_OR_RETURN(auto server, HttpServer::Start("127.0.0.1:0", pages));
///
/// No TLS; access control is up to the pages. Thread-safe.
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
