#include "server/peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <utility>

namespace fusion {

std::string PlainPeer(std::string_view grpc_name) {
  if (grpc_name.starts_with("unix:")) return "unix:";
  std::string plain(grpc_name.substr(grpc_name.find(':') + 1));  // npos + 1 is 0
  for (const auto& [escaped, bare] :
       {std::pair("%5B", "["), std::pair("%5D", "]"), std::pair("%25", "%")}) {
    const size_t at = plain.find(escaped);
    if (at != std::string::npos) plain.replace(at, 3, bare);
  }
  return plain;
}

namespace {

uid_t OverflowUid() {
  static const uid_t kUid = [] {
    uid_t uid = 65534;
    std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
    return uid;
  }();
  return kUid;
}

}  // namespace

bool IsOwner(int connection) {
  sockaddr address{};
  socklen_t length = sizeof(address);
  if (getsockname(connection, &address, &length) != 0 || address.sa_family != AF_UNIX) return false;
  ucred peer{};
  length = sizeof(peer);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  // In a user namespace, users whom it does not know all look like this one.
  const bool is_anybody = peer.uid == OverflowUid();
  return peer.uid == 0 || (peer.uid == geteuid() && !is_anybody);
}

}  // namespace fusion
