#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "server/transport/http_server.h"

namespace fusion {

/// What the admin port shows. Called on its threads; each must be thread-safe.
struct AdminPages {
  std::function<std::string()> metrics;  // Prometheus text
  std::function<std::string()> status;   // JSON
  std::function<bool()> ready;           // must not wait for anything
  /// What the compiler said about a kernel that failed; NotFound if nothing is kept.
  std::function<absl::StatusOr<std::string>(const Digest& kernel)> compile_log;
};

/// The admin port: /healthz (the process answers), /readyz (503 unless calls are wanted), /metrics,
/// /statusz, /compile_log/<kernel key in hex> (404 if there is none), and / with the list of these.
/// HTTP without access control. Health and readiness are answered however long the other pages
/// take, and however many slow connections there are (HttpServer). FailedPrecondition, saying why,
/// if `address` ("host:port") cannot be listened on. `hosts`: --admin-host.
absl::StatusOr<std::unique_ptr<HttpServer>> StartAdminPort(const std::string& address,
                                                           const std::vector<std::string>& hosts,
                                                           AdminPages pages);

}  // namespace fusion
