#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/logging.h"
#include "server/config/config.h"

namespace fusion {

/// Paths of the programs that fusiond starts.
struct Programs {
  std::string worker;  // bin/fusion-worker
  std::string exec;    // bin/fusion-exec
};
/// The programs in the directory of the running program.
Programs SiblingPrograms();

/// The whole server: starts its parts in order and stops them in the reverse order. The destructor
/// calls Stop, then closes the admin port and the store.
///
///   ASSIGN_OR_RETURN(auto daemon, Daemon::Start(config, SiblingPrograms(), logger));
///   ... wait for a signal ...
///   daemon->Stop();
///
/// Not thread-safe, except Hurry and Reload. One per process, because gRPC's log handler is global.
class Daemon {
 public:
  virtual ~Daemon() = default;

  /// Starts the server; it serves calls when this returns. Logs "listening" with the addresses.
  /// FailedPrecondition, naming what the operator can do: an address or the store is in use, the
  /// sandbox does not work here, other users can write a file. Other errors, such as a missing or
  /// invalid file, name the flag. Without a compiler it starts and logs that. `logger` must outlive
  /// the result.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const ServerConfig& config,
                                                       const Programs& programs, Logger& logger);

  /// Stops in steps: reports "not ready" for config.drain_seconds, so that load balancers notice;
  /// refuses new calls and gives running ones config.grace_seconds; ends the workers and the
  /// pipeline. Blocks until all is done. Idempotent.
  virtual void Stop() = 0;

  /// Skips the remaining drain and grace periods of a running Stop. Any thread.
  virtual void Hurry() = 0;

  /// Reads certificates and tokens again, changed or not. Invalid files are logged, and the
  /// previous ones stay in force. Any thread.
  virtual void Reload() = 0;
};

}  // namespace fusion
