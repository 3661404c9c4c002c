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

/// Accepts connections and hands them on, up to a limit; further ones are closed at once. Used in
/// place of gRPC's own listener, which has no limit and stops accepting permanently once the
/// process has run out of file descriptors (1.51). Thread-safe.
class ConnectionListener {
 public:
  /// Receives a connection accepted on addresses()[address] by the socket `listener`, and owns it.
  /// It is non-blocking and close-on-exec. Called on the listener's thread.
  using Take = std::function<void(size_t address, int listener, UniqueFd connection)>;

  /// Listens on each of `addresses`: "host:port" (port 0: any free one) or "unix:/path", whose file
  /// gets the mode and group of `access`. Connections wait in the backlog until Start. `limit`:
  /// open connections. Fails as ListenOn does; Internal if no file descriptor is left.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Open(
      const std::vector<std::string>& addresses, int64_t limit, const SocketAccess& access = {});
  /// Stop().
  ~ConnectionListener();

  /// As given to Open, with the actual ports.
  const std::vector<std::string>& addresses() const { return addresses_; }

  /// Starts a thread that accepts connections and calls `take`. Call it once.
  void Start(Take take);

  /// Stops accepting and removes socket files. Open connections continue. Idempotent.
  void Stop();

  /// While true, new connections are closed at once, as above the limit.
  void SetShortOfMemory(bool is_short) { short_of_memory_ = is_short; }

  /// Bytes by peer, named as in Closed.
  using BytesByPeer = std::unordered_map<std::string, int64_t>;

  /// Records how many bytes each open connection has sent so far: the baseline of CloseHeaviest.
  void NoteReceived();
  /// A connection that CloseHeaviest has closed.
  struct Closed {
    // "127.0.0.1:4711", "[::1]:4711", "unix:uid=1000,pid=4711,connection=17"
    std::string peer;
    int64_t bytes = 0;  // sent since NoteReceived, minus its entry in `known`
  };
  /// Closes the connection that has sent the most bytes since NoteReceived, not counting its entry
  /// in `known` (bytes of requests that arrived completely), if these are at least `bytes`.
  /// nullopt: there is none.
  std::optional<Closed> CloseHeaviest(int64_t bytes, const BytesByPeer& known = {});
  /// Closes the connection of `peer`, named as in Closed. False if there is none.
  bool Close(const std::string& peer);

  /// Number of open connections. Makes one system call per connection.
  int64_t open() const;
  int64_t limit() const { return limit_; }
  /// Number of connections closed at once, since the start.
  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Listener {
    UniqueFd fd;
    size_t address = 0;
  };
  // The inode tells it from another file that gets the same descriptor later.
  struct Connection {
    int fd = -1;
    uint64_t inode = 0;
    std::string peer;      // as in Closed
    int64_t noted = 0;     // bytes received by the last NoteReceived
    bool hung_up = false;  // closed by us, or gone; gRPC closes its descriptor later
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
  UniqueFd hand_;  // spare descriptor for HangUpOn
  Take take_;
  int64_t local_ = 0;  // connections of socket files so far; used by the thread only
  std::thread thread_;
  std::atomic<int64_t> refused_{0};
  std::atomic<bool> short_of_memory_{false};
  mutable Mutex mutex_;
  mutable std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  Nanoseconds looked_ ABSL_GUARDED_BY(mutex_) = Nanoseconds(0);  // last scan for closed ones
};

/// min(`wanted`, connections that the limit of file descriptors allows), at least 1. Each
/// connection takes one descriptor; 1,024, or half of the limit if that is less, stay reserved for
/// the store, workers and files.
int64_t ConnectionLimit(int64_t wanted);

}  // namespace fusion
