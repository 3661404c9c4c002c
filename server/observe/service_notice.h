#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"

namespace fusion {

/// Tells a service manager how the process is, as systemd's sd_notify does: one datagram to the
/// socket that $NOTIFY_SOCKET names. Ten lines, against a library (libsystemd) that would bring
/// compression and more into the process. Any thread.
class ServiceNotice {
 public:
  /// `socket`: a path, or "@" and an abstract name; empty: nobody wants to know.
  /// `watchdog_usec`: as in $WATCHDOG_USEC; empty: nobody watches.
  ServiceNotice(std::string socket, std::string_view watchdog_usec);

  /// "READY=1\nSTATUS=listening on 127.0.0.1:50051". False if it could not be sent.
  bool Send(std::string_view state) const;

  /// How often "WATCHDOG=1" is to be sent: twice as often as it is asked for.
  std::optional<Nanoseconds> watchdog() const { return watchdog_; }

 private:
  const std::string socket_;
  std::optional<Nanoseconds> watchdog_;
};

}  // namespace fusion
