#include "core/base/parse/host_port.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace fusion {

absl::StatusOr<HostPort> ParseHostPort(const std::string& address) {
  size_t colon = address.rfind(':');
  HostPort out;
  bool good = colon != std::string::npos && colon > 0;
  if (good) {
    out.host = address.substr(0, colon);
    if (out.host.front() == '[' && out.host.back() == ']') {
      out.host = out.host.substr(1, out.host.size() - 2);
    } else {
      good = out.host.find(':') == std::string::npos;
    }
    const char* end = address.data() + address.size();
    auto [stop, error] = std::from_chars(address.data() + colon + 1, end, out.port);
    good = good && error == std::errc() && stop == end && out.port >= 0 && out.port <= 65535;
  }
  if (!good) return InvalidArgument("address ", Quote(address), "; expected HOST:PORT");
  return out;
}

bool IsIpAddress(const std::string& host) {
  in6_addr room{};
  return inet_pton(AF_INET, host.c_str(), &room) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &room) == 1;
}

bool IsHostName(std::string_view name) {
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

}  // namespace fusion
