#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// The parts of "host:port" or "[v6]:port"; `host` has no brackets.
struct HostPort {
  std::string host;
  int port = 0;
};
/// InvalidArgument for any other form. Accepts ports 0..65535. Does not check that the host is an
/// address or a name; it must not be empty.
absl::StatusOr<HostPort> ParseHostPort(const std::string& address);

/// True for a dotted IPv4 address or an IPv6 address (without brackets).
bool IsIpAddress(const std::string& host);

/// True for 1 to 253 letters, digits, '-', '_' and '.'.
bool IsHostName(std::string_view name);

}  // namespace fusion
