#include "server/transport/peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

namespace fusion {

std::string PlainPeer(std::string_view grpc_name) {
  if (grpc_name.starts_with(kLocalPeer)) return std::string(grpc_name);
  // Also "unix-abstract:". Clients may choose such names.
  if (grpc_name.starts_with("unix")) return "unix:";
  std::string plain(grpc_name.substr(grpc_name.find(':') + 1));  // npos + 1 is 0
  for (const auto& [escaped, bare] :
       {std::pair("%5B", "["), std::pair("%5D", "]"), std::pair("%25", "%")}) {
    const size_t at = plain.find(escaped);
    if (at != std::string::npos) plain.replace(at, 3, bare);
  }
  return plain;
}

namespace {

// A user namespace shows all users that it has no mapping for as this one user. None if it maps all
// users.
std::optional<uid_t> UnknownUser() {
  static const std::optional<uid_t> kUser = []() -> std::optional<uid_t> {
    uint64_t first = 1, outside = 1, count = 0;
    std::ifstream("/proc/self/uid_map") >> first >> outside >> count;
    if (first == 0 && count >= std::numeric_limits<uint32_t>::max()) return std::nullopt;
    uid_t uid = 65534;
    std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
    return uid;
  }();
  return kUser;
}

}  // namespace

bool IsOwner(int connection) {
  sockaddr address{};
  socklen_t length = sizeof(address);
  if (getsockname(connection, &address, &length) != 0 || address.sa_family != AF_UNIX) return false;
  ucred peer{};
  length = sizeof(peer);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == 0 || (peer.uid == geteuid() && peer.uid != UnknownUser());
}

}  // namespace fusion
