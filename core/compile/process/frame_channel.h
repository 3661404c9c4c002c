#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/files/unique_fd.h"
#include "core/base/status.h"

namespace fusion {

/// Messages over a stream socket: 4 bytes of length (little endian), then the body. Not
/// thread-safe.
class FrameChannel {
 public:
  /// `max_bytes`: longest body in either direction. Takes ownership of `socket` and makes it
  /// non-blocking.
  FrameChannel(UniqueFd socket, size_t max_bytes);

  /// Sends one message. DeadlineExceeded if the peer does not read it within `timeout`, Unavailable
  /// if the peer closed the socket, InvalidArgument if it is too long. After an error the channel
  /// is unusable.
  absl::Status Send(std::string_view body, Nanoseconds timeout);

  /// The next message; nullopt if none is complete within `timeout` (partial data is kept).
  /// Unavailable if the peer closed the socket, InvalidArgument if it announces a message that is
  /// too long.
  absl::StatusOr<std::optional<std::string>> Receive(Nanoseconds timeout);

 private:
  // The first message in buffer_ if it is complete.
  absl::StatusOr<std::optional<std::string>> TakeMessage();

  UniqueFd socket_;
  const size_t max_bytes_;
  std::string buffer_;
};

}  // namespace fusion
