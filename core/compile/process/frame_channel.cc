#include "core/compile/process/frame_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace fusion {
namespace {

constexpr size_t kHeadBytes = 4;
constexpr size_t kReadBytes = 64 << 10;

// Waits until `fd` is ready for `events` or `deadline` passed.
void WaitReady(int fd, short events, Nanoseconds deadline) {
  Nanoseconds left = std::max(deadline - Clock::Real().Now(), Nanoseconds(0));
  pollfd ready{fd, events, 0};
  poll(&ready, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

absl::Status HungUp(int error) {
  return Unavailable("the other side hung up",
                     error == 0 ? "" : ": " + std::generic_category().message(error));
}

}  // namespace

FrameChannel::FrameChannel(UniqueFd socket, size_t max_bytes)
    : socket_(std::move(socket)), max_bytes_(max_bytes) {
  fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
}

absl::Status FrameChannel::Send(std::string_view body, Nanoseconds timeout) {
  if (body.size() > max_bytes_) {
    return InvalidArgument("message of ", body.size(), " bytes; at most ", max_bytes_);
  }
  std::string framed;
  framed.reserve(kHeadBytes + body.size());
  for (size_t i = 0; i < kHeadBytes; ++i) framed += static_cast<char>(body.size() >> (8 * i));
  framed += body;
  Nanoseconds deadline = Clock::Real().Now() + timeout;
  for (std::string_view rest = framed; !rest.empty();) {
    ssize_t n = send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n > 0) {
      rest.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return HungUp(errno);
    if (Clock::Real().Now() >= deadline) {
      return DeadlineExceeded("sending ", body.size(), " bytes: the other side does not read");
    }
    WaitReady(socket_.get(), POLLOUT, deadline);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> FrameChannel::Receive(Nanoseconds timeout) {
  Nanoseconds deadline = Clock::Real().Now() + timeout;
  for (;;) {
    ASSIGN_OR_RETURN(std::optional<std::string> message, TakeMessage());
    if (message.has_value()) return message;
    size_t before = buffer_.size();
    buffer_.resize(before + kReadBytes);
    ssize_t n = recv(socket_.get(), buffer_.data() + before, kReadBytes, 0);
    int error = errno;
    buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n > 0) continue;
    if (n == 0) return HungUp(0);
    if (error != EAGAIN && error != EINTR) return HungUp(error);
    if (Clock::Real().Now() >= deadline) return std::nullopt;
    WaitReady(socket_.get(), POLLIN, deadline);
  }
}

absl::StatusOr<std::optional<std::string>> FrameChannel::TakeMessage() {
  if (buffer_.size() < kHeadBytes) return std::nullopt;
  size_t length = 0;
  for (size_t i = 0; i < kHeadBytes; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>(buffer_[i])) << (8 * i);
  }
  if (length > max_bytes_) {
    return InvalidArgument("the other side announces ", length, " bytes; at most ", max_bytes_);
  }
  if (buffer_.size() < kHeadBytes + length) return std::nullopt;
  std::string body = buffer_.substr(kHeadBytes, length);
  buffer_.erase(0, kHeadBytes + length);
  return body;
}

}  // namespace fusion
