#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// "127.0.0.1:4711" or "[::1]:4711" of gRPC's name of a peer ("ipv6:%5B::1%5D:4711"); "unix:" for
/// every caller of a socket file.
std::string PlainPeer(std::string_view grpc_name);

/// Whether the process at the other end of a unix socket ran as root or as this process's user when
/// it connected (SO_PEERCRED). False for other sockets, and if the system does not say.
bool IsOwner(int connection);

}  // namespace fusion
