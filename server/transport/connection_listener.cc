#include "server/transport/connection_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/base/threads/named_thread.h"
#include "server/transport/peer.h"
#include "server/transport/socket_hooks.h"

namespace fusion {
namespace {

// File descriptors reserved for everything but connections.
constexpr int64_t kOtherFiles = 1024;
// A full server scans for closed connections no more often than this: a scan of 16,384 takes about
// 5 ms.
constexpr Nanoseconds kLookEvery = std::chrono::milliseconds(100);
// Pause after accept has failed for lack of memory or descriptors.
constexpr std::chrono::milliseconds kAcceptPause(50);

uint64_t InodeOf(int fd) {
  struct stat facts {};
  return fstat(fd, &facts) == 0 && S_ISSOCK(facts.st_mode) ? facts.st_ino : 0;
}

// Bytes received over a TCP connection. The system does not count for unix sockets: there, bytes
// read from the descriptor, including those from earlier files with the same number.
int64_t ReceivedOn(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return BytesReceivedOn(fd);
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

// Shuts the connection down and discards what is in its receive buffer: gRPC could still read
// megabytes from there.
void HangUp(int fd) {
  constexpr size_t kAtOnce = 1 << 20;
  shutdown(fd, SHUT_RDWR);
  while (recv(fd, nullptr, kAtOnce, MSG_TRUNC | MSG_DONTWAIT) > 0) continue;
}

// Name of the `number`-th connection to a socket file. Clients of socket files have no address, so
// it names the process that connected.
std::string LocalPeerOf(int fd, int64_t number) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return "";
  return StrCat(kLocalPeer, peer.uid, ",pid=", peer.pid, ",connection=", number);
}

// The peer as gRPC names it: an IPv4 peer of a dual-stack socket has an IPv4 name. Empty for a unix
// socket.
std::string PeerOf(int fd) {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
    sockaddr_storage room;
  } peer{};
  socklen_t length = sizeof(peer);
  char host[INET6_ADDRSTRLEN] = "";
  if (getpeername(fd, &peer.any, &length) != 0) return "";
  if (peer.any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &peer.v4.sin_addr, host, sizeof(host));
    return StrCat(host, ":", ntohs(peer.v4.sin_port));
  }
  if (peer.any.sa_family != AF_INET6) return "";
  const in6_addr& address = peer.v6.sin6_addr;
  const uint16_t port = ntohs(peer.v6.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, &address.s6_addr[12], host, sizeof(host));
    return StrCat(host, ":", port);
  }
  inet_ntop(AF_INET6, &address, host, sizeof(host));
  const uint32_t scope = peer.v6.sin6_scope_id;
  return StrCat("[", host, scope == 0 ? "" : StrCat("%", scope), "]:", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Open(
    const std::vector<std::string>& addresses, int64_t limit, const SocketAccess& access) {
  std::unique_ptr<ConnectionListener> listener(new ConnectionListener(limit));
  listener->wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener->wake_.valid())
    return Internal("no eventfd: ", std::generic_category().message(errno));
  listener->hand_ = UniqueFd(fcntl(listener->wake_.get(), F_DUPFD_CLOEXEC, 0));
  if (!listener->hand_.valid())
    return Internal("no file descriptor: ", std::generic_category().message(errno));
  for (size_t i = 0; i < addresses.size(); ++i) {
    RETURN_IF_ERROR(listener->Listen(i, addresses[i], access));
  }
  return listener;
}

ConnectionListener::~ConnectionListener() { Stop(); }

absl::Status ConnectionListener::Listen(size_t index, const std::string& address,
                                        const SocketAccess& access) {
  ASSIGN_OR_RETURN(ListeningSockets sockets, ListenOn(address, access));
  addresses_.push_back(sockets.address);
  for (UniqueFd& fd : sockets.fds) listeners_.push_back({std::move(fd), index});
  return absl::OkStatus();
}

void ConnectionListener::Start(Take take) {
  take_ = std::move(take);
  thread_ = NamedThread("listener", [this] { AcceptAll(); });
}

void ConnectionListener::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
    thread_.join();
  }
  if (listeners_.empty()) return;
  listeners_.clear();
  for (const std::string& address : addresses_) {
    std::error_code gone;
    std::string path = UnixSocketPath(address);
    if (!path.empty()) std::filesystem::remove(path, gone);
  }
}

void ConnectionListener::AcceptAll() {
  std::vector<pollfd> polled;
  for (const Listener& listener : listeners_) polled.push_back({listener.fd.get(), POLLIN, 0});
  polled.push_back({wake_.get(), POLLIN, 0});
  for (;;) {
    if (poll(polled.data(), polled.size(), -1) < 0) continue;  // a signal
    if (polled.back().revents != 0) return;
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (polled[i].revents != 0) AcceptFrom(listeners_[i]);
    }
  }
}

void ConnectionListener::AcceptFrom(const Listener& listener) {
  UniqueFd fd(accept4(listener.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      std::this_thread::sleep_for(kAcceptPause);
    }
    return;  // otherwise the peer has closed it already
  }
  if (!HasRoom()) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  int on = 1;  // fails for unix sockets, which do not need it
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  std::string peer = PeerOf(fd.get());
  const bool is_local = peer.empty();
  if (is_local) peer = LocalPeerOf(fd.get(), ++local_);
  const Connection connection = {.fd = fd.get(),
                                 .inode = InodeOf(fd.get()),
                                 .peer = peer,
                                 .noted = is_local ? ReceivedOn(fd.get()) : 0};
  {
    MutexLock lock(&mutex_);
    connections_.push_back(connection);
  }
  std::optional<PeerNameOverride> named;
  if (is_local) named.emplace(fd.get(), UnixSocketPath(peer));
  take_(listener.address, listener.fd.get(), std::move(fd));
}

bool ConnectionListener::HasRoom() {
  if (short_of_memory_) return false;
  MutexLock lock(&mutex_);
  if (static_cast<int64_t>(connections_.size()) < limit_) return true;
  const Nanoseconds now = Clock::Real().Now();
  if (now - looked_ < kLookEvery) return false;
  looked_ = now;
  Forget();
  return static_cast<int64_t>(connections_.size()) < limit_;
}

void ConnectionListener::Forget() const {
  std::erase_if(connections_, [](const Connection& connection) {
    return InodeOf(connection.fd) != connection.inode;
  });
}

void ConnectionListener::NoteReceived() {
  MutexLock lock(&mutex_);
  Forget();
  for (Connection& connection : connections_) connection.noted = ReceivedOn(connection.fd);
}

std::optional<ConnectionListener::Closed> ConnectionListener::CloseHeaviest(
    int64_t bytes, const BytesByPeer& known) {
  MutexLock lock(&mutex_);
  for (;;) {
    Connection* heaviest = nullptr;
    int64_t most = bytes;
    for (Connection& connection : connections_) {
      if (connection.hung_up) continue;
      int64_t sent = ReceivedOn(connection.fd) - connection.noted;
      if (sent < most) continue;
      auto meant = known.find(connection.peer);
      if (meant != known.end()) sent -= meant->second;
      if (sent < most) continue;
      heaviest = &connection;
      most = sent;
    }
    if (heaviest == nullptr) return std::nullopt;
    // False: it is gone, and the count was that of another file with its descriptor.
    if (HangUpOn(heaviest)) return Closed{heaviest->peer, most};
  }
}

bool ConnectionListener::Close(const std::string& peer) {
  MutexLock lock(&mutex_);
  for (Connection& connection : connections_) {
    if (!connection.hung_up && connection.peer == peer && HangUpOn(&connection)) return true;
  }
  return false;
}

// False if the connection is gone. Duplicates it onto the spare descriptor first: its own may
// become another file's at any moment, and no further descriptor may be available.
bool ConnectionListener::HangUpOn(Connection* connection) {
  connection->hung_up = true;
  if (dup3(connection->fd, hand_.get(), O_CLOEXEC) < 0) return false;
  const bool lives = InodeOf(hand_.get()) == connection->inode;
  if (lives) HangUp(hand_.get());
  dup3(wake_.get(), hand_.get(), O_CLOEXEC);  // lets go
  return lives;
}

int64_t ConnectionListener::open() const {
  MutexLock lock(&mutex_);
  Forget();
  return static_cast<int64_t>(connections_.size());
}

int64_t ConnectionLimit(int64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  const auto files = static_cast<int64_t>(limit.rlim_cur);
  return std::clamp(files - std::min(kOtherFiles, files / 2), int64_t{1}, wanted);
}

}  // namespace fusion
