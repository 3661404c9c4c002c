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
  int64_t per_peer = 64;                             // connections of one peer
  int64_t all = 256;                                 // connections of all peers
  Nanoseconds asking = std::chrono::seconds(5);      // from the connection to a whole request
  Nanoseconds answering = std::chrono::seconds(10);  // from an answer to its last byte
};

/// The open connections of an HttpServer, and which of them must go.
///
/// A connection beyond a limit does not wait and is not refused: the oldest one makes room for it.
/// So a peer that holds many slow connections cannot keep out a health check, not even one that
/// comes from the same host.
///
/// A connection is known by its file descriptor. Not thread-safe.
class HttpConnections {
 public:
  enum class State {
    kAsking,    // its request is not complete
    kWorking,   // its page is being made: it is never closed
    kAnswering  // its answer is being sent
  };

  explicit HttpConnections(const HttpLimits& limits) : limits_(limits) {}

  /// Which connection of all goes so that `peer` gets one more: nothing if there is room.
  /// The oldest of this peer if it has as many as it may have, else the oldest of the peer with the
  /// most. The victim counts as closed from now on; the caller closes it.
  /// `room` is false if no connection may go: the new one must be refused.
  struct Room {
    bool room = true;
    std::optional<int> victim;
  };
  Room MakeRoom(const std::string& peer);

  void Add(int fd, const std::string& peer, Nanoseconds now);
  void SetState(int fd, State state, Nanoseconds now);
  void Remove(int fd);

  /// Empty if there is no such connection.
  std::string PeerOf(int fd) const;

  /// Connections that have had their time. They count as closed from now on; the caller closes
  /// them.
  std::vector<int> TakeLate(Nanoseconds now);

  /// Without those that count as closed.
  int64_t size() const { return open_; }
  /// Of these, those whose requests are complete.
  int64_t busy() const;

 private:
  struct Connection {
    std::string peer;
    uint64_t number = 0;   // older ones have less
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

/// Whose connection it is: an IPv4 address, or the first 64 bits of an IPv6 address, which one host
/// can have all to itself.
std::string HttpPeer(const sockaddr_storage& address);

}  // namespace fusion
