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

/// A fusiond that belongs to this process: on a unix socket in a directory that only this user may
/// enter, stopped by the destructor, by SIGINT, SIGTERM or SIGHUP to this process, and by the death
/// of this process. What a killed process left in /tmp the next one removes.
///
/// Start it before other threads: they inherit that these signals are for the watching thread.
class EmbeddedServer {
 public:
  struct Options {
    std::string program;  // empty: fusiond beside this program
    std::string store;    // empty: none
    // Of its plans and kernels; 0: none. Whoever serves the store may allow more than a default.
    int64_t store_limit_bytes = 0;
    bool insecure_permissions = false;     // `store` may be one that others can write
    std::vector<std::string> import_keys;  // fusiond --import-key
    std::string signing_key;               // fusiond --signing-key; empty: none
    int workers = 0;                       // 0: its default
    Nanoseconds start_timeout = std::chrono::seconds(30);
    Nanoseconds store_timeout = std::chrono::seconds(5);  // while another process has the store
  };

  /// Returns when the socket is there. Unavailable, with the server's last words, if it ends before
  /// that.
  static absl::StatusOr<std::unique_ptr<EmbeddedServer>> Start(const Options& options);
  ~EmbeddedServer();

  /// "unix:/tmp/fusionctl-x7Gh2k/socket".
  std::string address() const;
  /// If it has ended: Unavailable, or ResourceExhausted where it had no memory, saying how and with
  /// the server's last words. Waits up to `timeout` for that.
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
