#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/clock.h"

namespace fusion {

/// Limits of the connections of an HttpServer.
struct HttpLimits {
  int64_t per_peer = 64;                         // connections of one peer
  int64_t all = 256;                             // connections of all peers
  Nanoseconds asking = std::chrono::seconds(5);  // from opening to a complete request
  Nanoseconds answering =
      std::chrono::seconds(10);  // from the start of the answer to its last byte
};

/// The open connections of an HttpServer, and the choice of those to close. Bookkeeping only: the
/// caller accepts and closes them.
///
/// A connection beyond a limit replaces the oldest one. So a peer that holds many slow connections
/// cannot block a health check, even one from the same host.
///
/// Connections are identified by their file descriptors; unknown ones are ignored. Not thread-safe.
class HttpConnections {
 public:
  enum class State {
    kAsking,    // the request is incomplete
    kWorking,   // the page is being made: never closed in this state
    kAnswering  // the answer is being sent
  };

  explicit HttpConnections(const HttpLimits& limits) : limits_(limits) {}

  /// The result of MakeRoom. `room` is false if no connection may be closed: then the new one must
  /// be refused.
  struct Room {
    bool room = true;
    std::optional<int> victim;
  };
  /// Chooses the connection to close before `peer` gets another one; no victim if both limits leave
  /// room. The victim is the oldest connection of `peer` if it is at its limit, else the oldest of
  /// the peer with the most. It counts as closed from now on; the caller closes it and then calls
  /// Remove.
  Room MakeRoom(const std::string& peer);

  /// Adds a connection in state kAsking. `now`: when it was opened.
  void Add(int fd, const std::string& peer, Nanoseconds now);
  void SetState(int fd, State state, Nanoseconds now);
  /// Call it for every connection when its descriptor is closed.
  void Remove(int fd);

  /// Empty if there is no such connection.
  std::string PeerOf(int fd) const;

  /// Connections past their time limit. They count as closed from now on; the caller closes them
  /// and then calls Remove.
  std::vector<int> TakeLate(Nanoseconds now);

  /// Number of connections that do not count as closed.
  int64_t size() const { return open_; }
  /// How many of these have a complete request.
  int64_t busy() const;

 private:
  struct Connection {
    std::string peer;
    uint64_t number = 0;   // in order of acceptance
    Nanoseconds since{0};  // in this state
    State state = State::kAsking;
    bool closing = false;
  };

  std::optional<int> OldestOf(const std::string& peer) const;
  int TakeVictim(int fd);

  const HttpLimits limits_;
  std::unordered_map<int, Connection> connections_;
  std::unordered_map<std::string, int64_t> by_peer_;
  int64_t open_ = 0;
  uint64_t next_ = 0;
};

/// The peer of a connection, as bytes: an IPv4 address, or the first 64 bits of an IPv6 address
/// (one host may own the whole /64). Empty for other families.
std::string HttpPeer(const sockaddr_storage& address);

}  // namespace fusion
