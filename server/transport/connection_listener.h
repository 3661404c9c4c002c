#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/base/clock.h"
#include "core/base/files/unique_fd.h"
#include "core/base/status.h"
#include "core/base/threads/mutex.h"
#include "server/transport/listen_address.h"

namespace fusion {

/// Accepts connections and hands them on, up to a limit; beyond it they are closed at once. gRPC's
/// own listener knows no limit, and is deaf for ever once the process ran out of file descriptors
/// (1.51). Thread-safe.
class ConnectionListener {
 public:
  /// Takes a connection that came in on the `address`-th address. Non-blocking, closed on exec.
  using Take = std::function<void(size_t address, int listener, UniqueFd connection)>;

  /// Listens on "host:port" (port 0: any free one) and "unix:/path", for whom `access` says; what
  /// comes waits until Start. FailedPrecondition, saying why, if one of them does not work.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Open(
      const std::vector<std::string>& addresses, int64_t limit, const SocketAccess& access = {});
  ~ConnectionListener();

  /// As asked for, with the real ports.
  const std::vector<std::string>& addresses() const { return addresses_; }

  /// From now on connections are accepted, on a thread of its own.
  void Start(Take take);

  /// Accepts no more and removes socket files. Connections live on. A second call does nothing.
  void Stop();

  /// While memory is short new connections are closed at once, as above the limit.
  void SetShortOfMemory(bool is_short) { short_of_memory_ = is_short; }

  /// Bytes by peer, as in Closed.
  using BytesByPeer = std::unordered_map<std::string, int64_t>;

  /// Notes how much each open connection has sent so far.
  void NoteReceived();
  /// Hangs up on the connection that has sent most since NoteReceived, but for what it is known
  /// to have sent for, if that is at least `bytes`: who it was, and how much.
  struct Closed {
    // "127.0.0.1:4711", "[::1]:4711", "unix:uid=1000,pid=4711,connection=17"
    std::string peer;
    int64_t bytes = 0;
  };
  std::optional<Closed> CloseHeaviest(int64_t bytes, const BytesByPeer& known = {});
  /// Hangs up on a connection, by its peer as above. False if there is none.
  bool Close(const std::string& peer);

  /// Of those handed on, how many are open. Looks at each of them.
  int64_t open() const;
  int64_t limit() const { return limit_; }
  /// Closed at once, since the start.
  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Listener {
    UniqueFd fd;
    size_t address = 0;
  };
  // Another file that gets its number later has another inode.
  struct Connection {
    int fd = -1;
    uint64_t inode = 0;
    std::string peer;      // as in Closed
    int64_t noted = 0;     // bytes
    bool hung_up = false;  // by us, or gone; gRPC lets go of it a while later
  };

  explicit ConnectionListener(int64_t limit) : limit_(limit) {}
  absl::Status Listen(size_t index, const std::string& address, const SocketAccess& access);
  void AcceptAll();
  void AcceptFrom(const Listener& listener);
  bool HasRoom();
  bool HangUpOn(Connection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t limit_;
  std::vector<std::string> addresses_;
  std::vector<Listener> listeners_;
  UniqueFd wake_;  // readable when the thread should end
  UniqueFd hand_;  // for HangUpOn
  Take take_;
  int64_t local_ = 0;  // connections of socket files so far; of the thread
  std::thread thread_;
  std::atomic<int64_t> refused_{0};
  std::atomic<bool> short_of_memory_{false};
  mutable Mutex mutex_;
  mutable std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  Nanoseconds looked_ ABSL_GUARDED_BY(mutex_) = Nanoseconds(0);  // for closed ones, last
};

/// `wanted` connections, or as many as this process's file descriptors leave: each takes one, and
/// the store, workers and files need some.
int64_t ConnectionLimit(int64_t wanted);

}  // namespace fusion
