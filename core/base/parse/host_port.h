#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// "host:port" or "[v6]:port" in two.
struct HostPort {
  std::string host;
  int port = 0;
};
/// InvalidArgument for anything else. Port 0 is one; the host may be any text.
absl::StatusOr<HostPort> ParseHostPort(const std::string& address);

/// True for an IPv4 address in four numbers, or an IPv6 address.
bool IsIpAddress(const std::string& host);

/// True for letters, digits, '-', '_', '.', as many as the name of a host can have.
bool IsHostName(std::string_view name);

}  // namespace fusion
