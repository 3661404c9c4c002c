#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/files/scratch.h"
#include "core/base/files/unique_fd.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// A fusiond of this process: a child process on a unix socket in a directory that only this user
/// may enter. It stops with the destructor, when SIGINT, SIGTERM or SIGHUP is sent to this process,
/// and when this process dies. The next start removes what a killed process has left in /tmp.
///
/// Start it before other threads: it blocks these signals, and other threads must inherit that.
class EmbeddedServer {
 public:
  struct Options {
    std::string program;  // empty: fusiond beside this program
    std::string store;    // empty: none
    // Of plans and kernels in `store`. 0: no limit, because its usual server may allow more than
    // the default.
    int64_t store_limit_bytes = 0;
    bool insecure_permissions = false;     // allows a `store` that other users can write
    std::vector<std::string> import_keys;  // fusiond --import-key
    std::string signing_key;               // fusiond --signing-key; empty: none
    int workers = 0;                       // 0: its default
    Nanoseconds start_timeout = std::chrono::seconds(30);
    Nanoseconds store_timeout = std::chrono::seconds(5);  // retries while the store is in use
  };

  /// Returns when the socket exists. Unavailable, with the end of the server's log, if the server
  /// ends before that, cannot be started, or exceeds start_timeout; ResourceExhausted if it had no
  /// memory.
  static absl::StatusOr<std::unique_ptr<EmbeddedServer>> Start(const Options& options);
  ~EmbeddedServer();

  /// "unix:/tmp/fusionctl-x7Gh2k/socket".
  std::string address() const;
  /// OK while the server runs. If it ends within `timeout`: Unavailable, or ResourceExhausted if it
  /// had no memory, with its exit status and the end of its log.
  absl::Status CheckRunning(Nanoseconds timeout);

 private:
  explicit EmbeddedServer(Scratch directory) : directory_(std::move(directory)) {}
  absl::Status Spawn(const Options& options);
  absl::Status Respawn(const Options& options);
  absl::Status AwaitSocket(Nanoseconds timeout);
  absl::Status WatchSignals();
  void Watch();
  void Stop();
  int Reap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string LastWords() const;

  Scratch directory_;
  pid_t pid_ = -1;
  UniqueFd process_;  // readable once the server has ended
  UniqueFd signals_;
  UniqueFd quit_;
  std::thread watcher_;
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<int> wait_status_ ABSL_GUARDED_BY(mutex_);  // once it has ended
};

}  // namespace fusion
