#include "server/pages/web.h"

namespace fusion {
namespace {

HttpReply CompileLog(const AdminPages& pages, std::string_view name) {
  Digest key;
  if (!Digest::FromHex(name, &key)) {
    return {.code = 400, .body = "expected /compile_log/ and 64 lower-case hex digits\n"};
  }
  absl::StatusOr<std::string> log = pages.compile_log(key);
  if (log.ok()) return {.body = *std::move(log)};
  return {.code = absl::IsNotFound(log.status()) ? 404 : 500,
          .body = StrCat(Message(log.status()), "\n")};
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> StartAdminPort(const std::string& address,
                                                           const std::vector<std::string>& hosts,
                                                           AdminPages pages,
                                                           std::vector<HttpPage> for_people) {
  auto shared = std::make_shared<const AdminPages>(std::move(pages));
  std::vector<HttpPage> served = {
      {.path = "/healthz",
       .about = "ok while the process answers",
       .immediate = true,
       .make = [](const HttpQuestion&) { return HttpReply{.body = "ok\n"}; }},
      {.path = "/readyz",
       .about = "ready, or 503 while the server starts or drains",
       .immediate = true,
       .make =
           [shared](const HttpQuestion&) {
             return shared->ready() ? HttpReply{.body = "ready\n"}
                                    : HttpReply{.code = 503, .body = "not ready\n"};
           }},
      {.path = "/metrics",
       .about = "calls, caches, compilers, queues and the process, in Prometheus' text format",
       .make =
           [shared](const HttpQuestion&) {
             return HttpReply{.type = "text/plain; version=0.0.4; charset=utf-8",
                              .body = shared->metrics()};
           }},
      {.path = "/statusz",
       .about = "configuration, compiler, workers, stores and calls, as JSON",
       .make =
           [shared](const HttpQuestion&) {
             return HttpReply{.type = "application/json", .body = shared->status()};
           }},
      {.path = "/compile_log/",
       .about =
           "and a kernel key (64 hex digits): what the compiler said about a kernel that failed",
       .make = [shared](const HttpQuestion& asked) { return CompileLog(*shared, asked.rest); }}};
  for (HttpPage& page : for_people) served.push_back(std::move(page));
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(address, std::move(served), hosts);
  if (!server.ok()) return Annotate(server.status(), "--admin");
  return server;
}

}  // namespace fusion
