#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// Prefix of the peer names that ConnectionListener gives to clients of socket files; the user id
/// follows.
inline constexpr std::string_view kLocalPeer = "unix:uid=";

/// Converts gRPC's name of a peer ("ipv6:%5B::1%5D:4711") to "127.0.0.1:4711" or "[::1]:4711".
/// Names with the prefix kLocalPeer stay unchanged; other unix peers become "unix:".
std::string PlainPeer(std::string_view grpc_name);

/// Whether the process at the other end of a unix socket ran as root or as this process's user when
/// it connected (SO_PEERCRED). False for other sockets, and if the system does not report it.
bool IsOwner(int connection);

}  // namespace fusion
