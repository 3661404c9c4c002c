#include "server/web.h"

#include <CivetServer.h>

#include <atomic>
#include <thread>
#include <vector>

#include "server/listen_address.h"

namespace fusion {
namespace {

struct Answer {
  int code = 200;
  const char* type = "text/plain; charset=utf-8";
  std::string body;
};

class Page final : public CivetHandler {
 public:
  explicit Page(std::function<Answer()> make) : make_(std::move(make)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    Answer answer = make_();
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
              "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
              answer.code, mg_get_response_code_text(connection, answer.code), answer.type,
              answer.body.size());
    mg_write(connection, answer.body.data(), answer.body.size());
    return true;
  }

 private:
  const std::function<Answer()> make_;
};

class RunningAdmin final : public AdminServer {
 public:
  RunningAdmin(const std::string& host, const std::string& address, AdminPages pages)
      : pages_(std::move(pages)),
        metrics_([this] {
          return Answer{200, "text/plain; version=0.0.4; charset=utf-8", pages_.metrics()};
        }),
        status_([this] {
          return Answer{200, "application/json", pages_.status()};
        }),
        health_([] { return Answer{.body = "ok\n"}; }),
        ready_([this] {
          return pages_.ready() ? Answer{.body = "ready\n"}
                                : Answer{.code = 503, .body = "not ready\n"};
        }),
        server_(std::vector<std::string>{"listening_ports", address, "num_threads", "4",
                                         "request_timeout_ms", "10000"}) {
    server_.addHandler("/metrics$", metrics_);
    server_.addHandler("/statusz$", status_);
    server_.addHandler("/healthz$", health_);
    server_.addHandler("/readyz$", ready_);
    std::vector<int> ports = server_.getListeningPorts();
    address_ = StrCat(host.find(':') == std::string::npos ? host : StrCat("[", host, "]"), ":",
                      ports.empty() ? 0 : ports[0]);
  }
  // The library looks whether it should stop when a connection comes, or every two seconds.
  ~RunningAdmin() override {
    std::atomic<bool> closed{false};
    std::thread closing([&] {
      server_.close();
      closed = true;
    });
    while (!closed) {
      Poke(address_);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    closing.join();
  }

  const std::string& address() const override { return address_; }

 private:
  const AdminPages pages_;
  Page metrics_, status_, health_, ready_;
  CivetServer server_;
  std::string address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(const std::string& address,
                                                                AdminPages pages) {
  absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return Annotate(parsed.status(), "--admin");
  // civetweb takes numbers only.
  std::string host = parsed->host == "localhost" ? "127.0.0.1" : parsed->host;
  std::string shown = host.find(':') == std::string::npos ? host : StrCat("[", host, "]");
  absl::Status free = TryListening(StrCat(shown, ":", parsed->port));
  if (!free.ok()) return Annotate(free, "--admin");
  try {
    return std::unique_ptr<AdminServer>(
        std::make_unique<RunningAdmin>(host, StrCat(shown, ":", parsed->port), std::move(pages)));
  } catch (const CivetException& error) {  // the library has no other way to say it
    return FailedPrecondition("--admin: cannot listen on ", address, ": ", error.what());
  }
}

}  // namespace fusion
