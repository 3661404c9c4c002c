#include "server/transport/socket_hooks.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace fusion {
namespace {

// More than a process may have open (Linux: fs.nr_open is 2^20 by default). Pages that no
// descriptor uses take no memory.
std::array<std::atomic<int64_t>, 1 << 20> g_received;

thread_local int t_named_fd = -1;
thread_local std::string t_name;

// The next function of this name after this program's own: the C library's, or a sanitizer's.
template <typename Function>
Function* NextFunction(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

int64_t BytesReceivedOn(int fd) {
  if (fd < 0 || static_cast<size_t>(fd) >= g_received.size()) return 0;
  return g_received[static_cast<size_t>(fd)].load(std::memory_order_relaxed);
}

PeerNameOverride::PeerNameOverride(int fd, std::string name) {
  t_name = std::move(name);
  t_named_fd = fd;
}

PeerNameOverride::~PeerNameOverride() { t_named_fd = -1; }

}  // namespace fusion

extern "C" {

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto kNext = fusion::NextFunction<ssize_t(int, msghdr*, int)>("recvmsg");
  const ssize_t got = kNext(fd, message, flags);
  if (got > 0 && (flags & MSG_PEEK) == 0 && static_cast<size_t>(fd) < fusion::g_received.size()) {
    fusion::g_received[static_cast<size_t>(fd)].fetch_add(got, std::memory_order_relaxed);
  }
  return got;
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the header's are reserved
__attribute__((visibility("default"))) int getpeername(int fd, sockaddr* address,
                                                       socklen_t* length) noexcept {
  static const auto kNext = fusion::NextFunction<int(int, sockaddr*, socklen_t*)>("getpeername");
  if (fd != fusion::t_named_fd || fd < 0) return kNext(fd, address, length);
  sockaddr_un named{};
  named.sun_family = AF_UNIX;
  const size_t bytes = std::min(fusion::t_name.size(), sizeof(named.sun_path) - 1);
  std::memcpy(named.sun_path, fusion::t_name.data(), bytes);
  const auto real = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes + 1);
  std::memcpy(address, &named, std::min(real, *length));
  *length = real;
  return 0;
}
}
