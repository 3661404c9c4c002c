#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// What the name of a client of a socket file begins with; then comes its user's number. See
/// ConnectionListener.
inline constexpr std::string_view kLocalPeer = "unix:uid=";

/// "127.0.0.1:4711" or "[::1]:4711" of gRPC's name of a peer ("ipv6:%5B::1%5D:4711"). The name of
/// a client of a socket file is as it was, if we gave it (kLocalPeer); else it is "unix:".
std::string PlainPeer(std::string_view grpc_name);

/// Whether the process at the other end of a unix socket ran as root or as this process's user when
/// it connected (SO_PEERCRED). False for other sockets, and if the system does not say.
bool IsOwner(int connection);

}  // namespace fusion
