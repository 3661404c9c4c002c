#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/logging.h"
#include "server/config/config.h"

namespace fusion {

/// Programs that fusiond starts.
struct Programs {
  std::string worker;  // bin/fusion-worker
  std::string exec;    // bin/fusion-exec
};
/// They lie beside the running program.
Programs SiblingPrograms();

/// The whole server: starts its parts in order, stops them in the reverse order.
///
///   ASSIGN_OR_RETURN(auto daemon, Daemon::Start(config, SiblingPrograms(), logger));
///   ... wait for a signal ...
///   daemon->Stop();
///
/// Not thread-safe; one per process, because gRPC's log handler is global.
class Daemon {
 public:
  virtual ~Daemon() = default;

  /// Returns when calls are answered; logs "listening" with the addresses. FailedPrecondition,
  /// saying what the operator can do: an address in use, a store in use, a sandbox that does not
  /// work here. Without a compiler it starts, and says so in its log.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const ServerConfig& config,
                                                       const Programs& programs, Logger& logger);

  /// Not ready; waits config.drain_seconds for balancers to see it; refuses calls and gives those
  /// under way config.grace_seconds; ends workers; closes the store. A second call does nothing.
  virtual void Stop() = 0;

  /// Ends the wait for balancers and the grace of a Stop that is under way. Any thread.
  virtual void Hurry() = 0;

  /// Reads certificates and tokens again, changed or not. What is bad is logged, and the old ones
  /// stay. Any thread.
  virtual void Reload() = 0;
};

}  // namespace fusion
