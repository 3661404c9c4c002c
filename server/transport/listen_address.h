#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/files/unique_fd.h"
#include "core/base/parse/host_port.h"
#include "core/base/status.h"

namespace fusion {

/// InvalidArgument unless `address` reads "host:port" or "unix:/path", of a length a socket can
/// have.
absl::Status CheckListenAddress(const std::string& address);

/// True for addresses that other machines cannot reach: unix sockets, 127.0.0.0/8, ::1, localhost.
/// Other names are not looked up.
bool IsLocalAddress(const std::string& address);

/// FailedPrecondition, naming the address and the flags, for one of --listen that other machines
/// can reach.
absl::Status CheckPlaintext(const std::string& address);
/// The same for that of --admin.
absl::Status CheckOpenAdmin(const std::string& address);

/// Sockets on which connections wait to be accepted; non-blocking, closed on exec.
struct ListeningSockets {
  std::vector<UniqueFd> fds;  // one for each address that the host has
  std::string address;        // as asked for, with the real port
};
/// Who may connect to a socket file.
struct SocketAccess {
  mode_t mode = 0600;
  std::string group;  // name or number of the file's group; empty: this process's
};
/// Octal digits: "0660". InvalidArgument unless the owner may read and write, and nobody more than
/// that.
absl::StatusOr<mode_t> ParseSocketMode(const std::string& text);
/// FailedPrecondition unless the group exists and this process may give it a file.
absl::Status CheckSocketGroup(const std::string& group);

/// Of "host:port" (port 0: any free one, the same for all) or "unix:/path", whose file takes the
/// place of one that a dead server left, with the rights of `access` from the first moment.
/// FailedPrecondition, saying what the system says.
absl::StatusOr<ListeningSockets> ListenOn(const std::string& address,
                                          const SocketAccess& access = {});

/// Why a server may not be able to listen on "host:port" or "unix:/path", as ListenOn says it. OK
/// if it works now. Leaves nothing.
absl::Status TryListening(const std::string& address);

/// Whether ListenOn or TryListening failed because somebody listens there already.
bool IsInUse(const absl::Status& status);

/// Makes the way free for a socket file: one that a dead server left behind is removed.
/// FailedPrecondition if a server answers on it (IsInUse), or if it is no socket.
absl::Status ClearUnixSocket(const std::string& path);

/// The path of "unix:/path"; empty for other addresses.
std::string UnixSocketPath(const std::string& address);

}  // namespace fusion
