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
  /// `max_bytes`: longest body in either direction. Takes over `socket` and makes it non-blocking.
  FrameChannel(UniqueFd socket, size_t max_bytes);

  /// Sends one message. DeadlineExceeded if the peer does not take it within `timeout`, Unavailable
  /// if the peer hung up, InvalidArgument if it is too long. After an error the channel is of no
  /// more use.
  absl::Status Send(std::string_view body, Nanoseconds timeout);

  /// The next message; nullopt if none is complete within `timeout` (what came so far is kept).
  /// Unavailable if the peer hung up, InvalidArgument if it announces a message that is too long.
  absl::StatusOr<std::optional<std::string>> Receive(Nanoseconds timeout);

 private:
  // The first message in buffer_, if it is there as a whole.
  absl::StatusOr<std::optional<std::string>> TakeMessage();

  UniqueFd socket_;
  const size_t max_bytes_;
  std::string buffer_;
};

}  // namespace fusion
