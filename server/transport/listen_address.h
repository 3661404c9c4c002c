#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/files/unique_fd.h"
#include "core/base/parse/host_port.h"
#include "core/base/status.h"

namespace fusion {

/// InvalidArgument unless `address` is "host:port", or "unix:/path" with a path of at most 107
/// bytes.
absl::Status CheckListenAddress(const std::string& address);

/// True for addresses that other machines cannot reach: unix sockets, 127.0.0.0/8, ::1, localhost.
/// Host names are not resolved: all others count as reachable.
bool IsLocalAddress(const std::string& address);

/// FailedPrecondition, naming the address and the flags that help, if other machines can reach an
/// address of --listen that has no TLS.
absl::Status CheckPlaintext(const std::string& address);
/// The same for the address of --admin.
absl::Status CheckOpenAdmin(const std::string& address);

/// Listening sockets; non-blocking, close-on-exec.
struct ListeningSockets {
  std::vector<UniqueFd> fds;  // one for each IP address that the host name resolves to
  std::string address;        // as requested, with the actual port
};
/// Who may connect to a socket file.
struct SocketAccess {
  mode_t mode = 0600;
  std::string group;  // name or number of the file's group; empty: this process's
};
/// Parses octal digits, as "0660". InvalidArgument unless the mode gives read and write to the
/// owner, and execute or special bits to nobody.
absl::StatusOr<mode_t> ParseSocketMode(const std::string& text);
/// FailedPrecondition unless the group (name or number) exists and this process may give it a file.
absl::Status CheckSocketGroup(const std::string& group);

/// Listens on "host:port" (port 0: any free one, the same for all sockets) or "unix:/path". The
/// socket file replaces one that a dead server left. It gets mode and group of `access` after it is
/// made: set the process's umask to 0077, so that nobody else can connect before.
/// FailedPrecondition, with the system's message (IsInUse if the address is taken); InvalidArgument
/// if `address` is malformed.
absl::StatusOr<ListeningSockets> ListenOn(const std::string& address,
                                          const SocketAccess& access = {});

/// Whether ListenOn(address) would succeed now: OK, or its error. Leaves no socket and no file.
absl::Status TryListening(const std::string& address);

/// Whether ListenOn or TryListening failed because the address is already in use.
bool IsInUse(const absl::Status& status);

/// Removes a socket file that a dead server left; OK if there is none. FailedPrecondition if a
/// server answers on it (IsInUse) or if it is not a socket.
absl::Status ClearUnixSocket(const std::string& path);

/// The path of "unix:/path"; empty for other addresses.
std::string UnixSocketPath(const std::string& address);

}  // namespace fusion
