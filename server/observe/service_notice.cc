#include "server/observe/service_notice.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstring>

#include "core/base/files/unique_fd.h"

namespace fusion {

ServiceNotice::ServiceNotice(std::string socket, std::string_view watchdog_usec)
    : socket_(std::move(socket)) {
  int64_t usec = 0;
  const char* end = watchdog_usec.data() + watchdog_usec.size();
  auto [stop, error] = std::from_chars(watchdog_usec.data(), end, usec);
  if (error == std::errc() && stop == end && usec > 0) {
    watchdog_ = std::chrono::microseconds(usec) / 2;
  }
}

bool ServiceNotice::Send(std::string_view state) const {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof(to.sun_path)) return false;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.valid() && sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&to),
                              length) == static_cast<ssize_t>(state.size());
}

}  // namespace fusion
