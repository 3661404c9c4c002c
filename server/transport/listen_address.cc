#include "server/transport/listen_address.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/cord.h"
#include "core/base/contains.h"
#include "core/base/files/unique_fd.h"

namespace fusion {
namespace {

constexpr std::string_view kUnix = "unix:";

constexpr char kInUse[] = "fusion.address-in-use";

// Marks a status for IsInUse.
absl::Status InUse(absl::Status why) {
  why.SetPayload(kInUse, absl::Cord());
  return why;
}

std::string ErrorText(int error) { return std::generic_category().message(error); }

absl::StatusOr<sockaddr_un> UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("socket path ", Quote(path), " has ", path.size(),
                           " bytes; expected 1..", sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

// True if the socket file of a dead server exists; false if no file exists.
absl::StatusOr<bool> LooksLeftOver(const std::string& path) {
  ASSIGN_OR_RETURN(sockaddr_un address, UnixAddress(path));
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) return false;
  if (!S_ISSOCK(facts.st_mode)) {
    return FailedPrecondition("cannot listen on unix:", path,
                              ": a file that is no socket is there");
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return InUse(
        FailedPrecondition("cannot listen on unix:", path, ": another server answers there"));
  }
  if (errno != ECONNREFUSED) {
    return FailedPrecondition("cannot listen on unix:", path, ": ", ErrorText(errno));
  }
  return true;
}

absl::StatusOr<UniqueFd> Bind(int family, const sockaddr* address, socklen_t length,
                              const std::string& name) {
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int on = 1;
  if (family != AF_UNIX) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (!fd.valid() || bind(fd.get(), address, length) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    const int error = errno;
    std::string why = StrCat("cannot listen on ", name, ": ", ErrorText(error));
    if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) return Unavailable(why);
    return error == EADDRINUSE ? InUse(FailedPrecondition(why)) : FailedPrecondition(why);
  }
  return fd;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

// At least one.
absl::StatusOr<AddressList> Resolve(const std::string& address) {
  ASSIGN_OR_RETURN(HostPort parsed, ParseHostPort(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  int error = getaddrinfo(parsed.host.c_str(), StrCat(parsed.port).c_str(), &hints, &found);
  if (error != 0) {
    return FailedPrecondition("cannot listen on ", address, ": ", gai_strerror(error));
  }
  return AddressList(found);
}

}  // namespace

bool IsLocalAddress(const std::string& address) {
  if (address.starts_with(kUnix)) return true;
  absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return false;
  if (parsed->host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, parsed->host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, parsed->host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status CheckPlaintext(const std::string& address) {
  if (IsLocalAddress(address)) return absl::OkStatus();
  return FailedPrecondition("--listen: ", address,
                            ": other machines can connect there, and nothing is encrypted; "
                            "expected --tls-cert and --tls-key, or --allow-plaintext");
}

absl::Status CheckOpenAdmin(const std::string& address) {
  if (IsLocalAddress(address)) return absl::OkStatus();
  return FailedPrecondition("--admin: ", address,
                            ": other machines can connect there, and nobody is asked who he is; "
                            "expected a local address, or --allow-plaintext");
}

std::string UnixSocketPath(const std::string& address) {
  return address.starts_with(kUnix) ? address.substr(kUnix.size()) : "";
}

absl::Status CheckListenAddress(const std::string& address) {
  if (address.starts_with(kUnix)) return UnixAddress(UnixSocketPath(address)).status();
  return ParseHostPort(address).status();
}

absl::StatusOr<mode_t> ParseSocketMode(const std::string& text) {
  constexpr mode_t kOwner = 0600;
  constexpr mode_t kMost = 0666;
  unsigned mode = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, mode, 8);
  const bool number = error == std::errc() && stop == end;
  if (number && (mode & kOwner) == kOwner && (mode & ~kMost) == 0) return mode;
  return InvalidArgument(QuoteShort(text),
                         " is no mode of a socket; expected octal digits from 0600 to 0666 with "
                         "read and write for the owner, as 0660");
}

namespace {

absl::StatusOr<gid_t> FindGroup(const std::string& name) {
  gid_t number = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  constexpr size_t kMostBytes = 1 << 20;  // of the members' names
  for (std::vector<char> buffer(4096); buffer.size() <= kMostBytes;
       buffer.resize(2 * buffer.size())) {
    group entry{};
    group* found = nullptr;
    const int failed = getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (failed == ERANGE) continue;
    if (found != nullptr) return found->gr_gid;
    break;
  }
  return FailedPrecondition("this system has no group ", QuoteShort(name));
}

// Sets group and mode of the socket file. Until then the umask keeps others out.
absl::Status SetAccess(const std::string& path, const SocketAccess& access) {
  if (!access.group.empty()) {
    ASSIGN_OR_RETURN(const gid_t group, FindGroup(access.group));
    struct stat facts {};
    const bool has_it = stat(path.c_str(), &facts) == 0 && facts.st_gid == group;
    if (!has_it && chown(path.c_str(), static_cast<uid_t>(-1), group) != 0) {
      return FailedPrecondition("socket file ", Quote(path), ": giving it to group ",
                                QuoteShort(access.group), ": ", ErrorText(errno));
    }
  }
  if (chmod(path.c_str(), access.mode) == 0) return absl::OkStatus();
  return FailedPrecondition("socket file ", Quote(path), ": ", ErrorText(errno));
}

absl::StatusOr<ListeningSockets> ListenOnUnix(const std::string& address,
                                              const SocketAccess& access) {
  const std::string path = UnixSocketPath(address);
  RETURN_IF_ERROR(ClearUnixSocket(path));
  ASSIGN_OR_RETURN(sockaddr_un socket_address, UnixAddress(path));
  ListeningSockets out{.address = address};
  ASSIGN_OR_RETURN(out.fds.emplace_back(),
                   Bind(AF_UNIX, reinterpret_cast<const sockaddr*>(&socket_address),
                        sizeof(socket_address), address));
  absl::Status given = SetAccess(path, access);
  if (given.ok()) return out;
  unlink(path.c_str());
  return given;
}

int PortOf(const UniqueFd& fd) {
  sockaddr_in6 name{};  // the port has the same offset as in sockaddr_in
  socklen_t length = sizeof(name);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length);
  return ntohs(name.sin6_port);
}

void SetPort(int port, sockaddr* address) {
  reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(static_cast<uint16_t>(port));
}

}  // namespace

absl::Status CheckSocketGroup(const std::string& group) {
  ASSIGN_OR_RETURN(const gid_t wanted, FindGroup(group));
  if (geteuid() == 0 || getegid() == wanted) return absl::OkStatus();
  const int count = getgroups(0, nullptr);
  std::vector<gid_t> mine(static_cast<size_t>(std::max(count, 0)));
  if (getgroups(count, mine.data()) >= 0 && Contains(mine, wanted)) return absl::OkStatus();
  return FailedPrecondition("this process's user is not in the group ", QuoteShort(group));
}

absl::StatusOr<ListeningSockets> ListenOn(const std::string& address, const SocketAccess& access) {
  if (address.starts_with(kUnix)) return ListenOnUnix(address, access);
  ASSIGN_OR_RETURN(AddressList found, Resolve(address));
  ListeningSockets out;
  absl::Status missing;
  int port = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    if (port != 0) SetPort(port, one->ai_addr);
    absl::StatusOr<UniqueFd> fd = Bind(one->ai_family, one->ai_addr, one->ai_addrlen, address);
    if (fd.ok()) {
      port = PortOf(*fd);
      out.fds.push_back(*std::move(fd));
    } else if (absl::IsUnavailable(fd.status())) {
      // A name may resolve to addresses that this host does not have.
      missing = FailedPrecondition(Message(fd.status()));
    } else {
      return fd.status();
    }
  }
  if (out.fds.empty()) return missing;
  out.address = StrCat(address.substr(0, address.rfind(':') + 1), port);
  return out;
}

absl::Status TryListening(const std::string& address) {
  if (!address.starts_with(kUnix)) return ListenOn(address).status();
  const std::string path = UnixSocketPath(address);
  RETURN_IF_ERROR(LooksLeftOver(path).status());  // a start would remove a left-over file
  const std::string dir = std::filesystem::path(path).parent_path().string();
  if (access(dir.empty() ? "." : dir.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return FailedPrecondition("cannot listen on ", address, ": ", ErrorText(errno));
}

bool IsInUse(const absl::Status& status) { return status.GetPayload(kInUse).has_value(); }

absl::Status ClearUnixSocket(const std::string& path) {
  ASSIGN_OR_RETURN(const bool is_left_over, LooksLeftOver(path));
  if (is_left_over) unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace fusion
