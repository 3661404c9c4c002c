#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "server/transport/http_server.h"

namespace fusion {

/// The contents of the admin port's pages for programs. Called on its threads; each must be
/// thread-safe.
struct AdminPages {
  std::function<std::string()> metrics;  // Prometheus text
  std::function<std::string()> status;   // JSON
  std::function<bool()> ready;           // must not block
  /// The compiler's output for a kernel that failed; NotFound if none is kept.
  std::function<absl::StatusOr<std::string>(const Digest& kernel)> compile_log;
};

/// Starts the admin port: /healthz (the process answers), /readyz (503 while not ready), /metrics,
/// /statusz, /compile_log/<kernel key in hex> (404 if there is none), without access control, and
/// `for_people` (OperatorPages), which check who asks. Slow pages and slow connections do not delay
/// /healthz and /readyz (HttpServer). Fails as HttpServer::Start does. `hosts`: --admin-host.
absl::StatusOr<std::unique_ptr<HttpServer>> StartAdminPort(const std::string& address,
                                                           const std::vector<std::string>& hosts,
                                                           AdminPages pages,
                                                           std::vector<HttpPage> for_people);

}  // namespace fusion
