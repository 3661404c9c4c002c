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
  // `make` is given what the caller wrote behind the last '/'.
  explicit Page(std::function<Answer(std::string_view name)> make) : make_(std::move(make)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    std::string_view path = mg_get_request_info(connection)->local_uri;
    Answer answer = make_(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
              "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
              answer.code, mg_get_response_code_text(connection, answer.code), answer.type,
              answer.body.size());
    mg_write(connection, answer.body.data(), answer.body.size());
    return true;
  }

 private:
  const std::function<Answer(std::string_view name)> make_;
};

class RunningAdmin final : public AdminServer {
 public:
  RunningAdmin(const std::string& host, const std::string& address, AdminPages pages)
      : pages_(std::move(pages)),
        metrics_([this](std::string_view) {
          return Answer{200, "text/plain; version=0.0.4; charset=utf-8", pages_.metrics()};
        }),
        status_([this](std::string_view) {
          return Answer{200, "application/json", pages_.status()};
        }),
        health_([](std::string_view) { return Answer{.body = "ok\n"}; }),
        ready_([this](std::string_view) {
          return pages_.ready() ? Answer{.body = "ready\n"}
                                : Answer{.code = 503, .body = "not ready\n"};
        }),
        log_([this](std::string_view name) { return CompileLog(name); }),
        server_(std::vector<std::string>{"listening_ports", address, "num_threads", "4",
                                         "request_timeout_ms", "10000"}) {
    server_.addHandler("/metrics$", metrics_);
    server_.addHandler("/statusz$", status_);
    server_.addHandler("/healthz$", health_);
    server_.addHandler("/readyz$", ready_);
    server_.addHandler("/compile_log/*$", log_);
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
  Answer CompileLog(std::string_view name) const {
    Digest key;
    if (!Digest::FromHex(name, &key)) {
      return {.code = 400, .body = "expected /compile_log/ and 64 lower-case hex digits\n"};
    }
    absl::StatusOr<std::string> log = pages_.compile_log(key);
    if (log.ok()) return {.body = *std::move(log)};
    return {.code = absl::IsNotFound(log.status()) ? 404 : 500,
            .body = StrCat(Message(log.status()), "\n")};
  }

  const AdminPages pages_;
  Page metrics_, status_, health_, ready_, log_;
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
