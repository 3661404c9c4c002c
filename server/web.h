#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/hash.h"
#include "core/base/status.h"

namespace fusion {

/// What the admin port shows. Called on its threads; each must be thread-safe.
struct AdminPages {
  std::function<std::string()> metrics;  // Prometheus text
  std::function<std::string()> status;   // JSON
  std::function<bool()> ready;
  /// What the compiler said about a kernel that failed; NotFound if nothing is kept.
  std::function<absl::StatusOr<std::string>(const Digest& kernel)> compile_log;
};

/// The admin port: GET /metrics, /statusz, /healthz (the process answers), /readyz (503 unless
/// calls are wanted), /compile_log/<kernel key in hex> (404 if there is none). HTTP without access
/// control. Destroying it waits for requests under way.
class AdminServer {
 public:
  virtual ~AdminServer() = default;

  /// FailedPrecondition, saying why, if `address` ("host:port") cannot be listened on.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(const std::string& address,
                                                            AdminPages pages);

  /// With the real port where that was 0.
  virtual const std::string& address() const = 0;
};

}  // namespace fusion
