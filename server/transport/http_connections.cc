#include "server/transport/http_connections.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace fusion {

std::optional<int> HttpConnections::OldestOf(const std::string& peer) const {
  std::optional<int> oldest;
  uint64_t least = 0;
  for (const auto& [fd, connection] : connections_) {
    if (connection.closing || connection.state == State::kWorking || connection.peer != peer) {
      continue;
    }
    if (oldest.has_value() && connection.number > least) continue;
    oldest = fd;
    least = connection.number;
  }
  return oldest;
}

int HttpConnections::TakeVictim(int fd) {
  Connection& victim = connections_.at(fd);
  victim.closing = true;
  --by_peer_[victim.peer];
  --open_;
  return fd;
}

HttpConnections::Room HttpConnections::MakeRoom(const std::string& peer) {
  const auto found = by_peer_.find(peer);
  const bool peer_is_full = found != by_peer_.end() && found->second >= limits_.per_peer;
  if (!peer_is_full && open_ < limits_.all) return {};
  std::optional<int> victim;
  if (peer_is_full) {
    victim = OldestOf(peer);
  } else {
    int64_t most = 0;
    for (const auto& [other, count] : by_peer_) {
      if (count <= most) continue;
      const std::optional<int> oldest = OldestOf(other);
      if (!oldest.has_value()) continue;
      victim = oldest;
      most = count;
    }
  }
  if (!victim.has_value()) return {.room = false, .victim = std::nullopt};
  return {.room = true, .victim = TakeVictim(*victim)};
}

void HttpConnections::Add(int fd, const std::string& peer, Nanoseconds now) {
  connections_[fd] = {.peer = peer, .number = next_++, .since = now};
  ++by_peer_[peer];
  ++open_;
}

void HttpConnections::SetState(int fd, State state, Nanoseconds now) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  found->second.state = state;
  found->second.since = now;
}

void HttpConnections::Remove(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  const std::string peer = found->second.peer;
  if (!found->second.closing) TakeVictim(fd);
  connections_.erase(found);
  if (by_peer_[peer] == 0) by_peer_.erase(peer);
}

std::string HttpConnections::PeerOf(int fd) const {
  const auto found = connections_.find(fd);
  return found == connections_.end() ? "" : found->second.peer;
}

std::vector<int> HttpConnections::TakeLate(Nanoseconds now) {
  std::vector<int> late;
  for (const auto& [fd, connection] : connections_) {
    if (connection.closing || connection.state == State::kWorking) continue;
    const Nanoseconds limit =
        connection.state == State::kAsking ? limits_.asking : limits_.answering;
    if (now - connection.since >= limit) late.push_back(fd);
  }
  for (int fd : late) TakeVictim(fd);
  return late;
}

int64_t HttpConnections::busy() const {
  return std::count_if(connections_.begin(), connections_.end(), [](const auto& entry) {
    return !entry.second.closing && entry.second.state != State::kAsking;
  });
}

std::string HttpPeer(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    return {reinterpret_cast<const char*>(&v4.sin_addr), sizeof(v4.sin_addr)};
  }
  if (address.ss_family != AF_INET6) return "";
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof(v6));
  const auto* bytes = reinterpret_cast<const char*>(&v6.sin6_addr);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return {bytes + 12, 4};
  return {bytes, 8};
}

}  // namespace fusion
