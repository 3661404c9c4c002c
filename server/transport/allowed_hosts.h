#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// The values of the header Host that an HTTP server accepts: any IP address, localhost, the host
/// that it listens on, and names that the operator listed. Protects against DNS rebinding: a web
/// page that points its own name at this server makes the browser send that name in Host.
/// Immutable, so thread-safe.
class AllowedHosts {
 public:
  /// `address`: the "host:port" listened on. `names`: further names without a port; "*" allows all.
  AllowedHosts(const std::string& address, const std::vector<std::string>& names);

  /// `host`: "name", "name:port", "10.0.0.1:port" or "[::1]:port"; names are case-insensitive.
  bool Allow(std::string_view host) const;

 private:
  std::set<std::string, std::less<>> names_;  // lower case
  bool all_ = false;
};

}  // namespace fusion
