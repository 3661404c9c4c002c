#include "server/transport/allowed_hosts.h"

#include <algorithm>

#include "core/base/parse/host_port.h"

namespace fusion {
namespace {

// DNS compares names so, and a dot at the end means nothing here.
std::string PlainName(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  std::string out(name);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

AllowedHosts::AllowedHosts(const std::string& address, const std::vector<std::string>& names) {
  names_.insert("localhost");
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (parsed.ok()) names_.insert(PlainName(parsed->host));
  for (const std::string& name : names) {
    if (name == "*") all_ = true;
    names_.insert(PlainName(name));
  }
}

bool AllowedHosts::Allow(std::string_view host) const {
  if (all_) return true;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return end != std::string_view::npos && IsIpAddress(std::string(host.substr(1, end - 1)));
  }
  const std::string name = PlainName(host.substr(0, host.find(':')));
  return names_.contains(name) || IsIpAddress(name);
}

}  // namespace fusion
