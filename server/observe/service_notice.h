#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"

namespace fusion {

/// Reports the state of the process to a service manager, like systemd's sd_notify: one datagram to
/// the socket that $NOTIFY_SOCKET names. Used in place of libsystemd, which has many dependencies.
/// Any thread.
class ServiceNotice {
 public:
  /// `socket`: a path, or "@" and an abstract name; empty: Send returns false. `watchdog_usec`: the
  /// value of $WATCHDOG_USEC; empty: no watchdog.
  ServiceNotice(std::string socket, std::string_view watchdog_usec);

  /// Sends `state`, as "READY=1\nSTATUS=serving". False if it could not be sent.
  bool Send(std::string_view state) const;

  /// Interval at which to send "WATCHDOG=1": half of $WATCHDOG_USEC. nullopt: no watchdog.
  std::optional<Nanoseconds> watchdog() const { return watchdog_; }

 private:
  const std::string socket_;
  std::optional<Nanoseconds> watchdog_;
};

}  // namespace fusion
