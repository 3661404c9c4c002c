#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// Which values of the header Host an HTTP server answers: an IP address, localhost, the host that
/// it listens on, or a name that the operator listed. A web page that gives its own name the
/// address of this server (DNS rebinding) has a browser send that name, and learns nothing.
/// Thread-safe: const.
class AllowedHosts {
 public:
  /// `address`: "host:port", listened on. `names`: further ones, without port; "*" allows all.
  AllowedHosts(const std::string& address, const std::vector<std::string>& names);

  /// Of "name", "name:port", "10.0.0.1:port" or "[::1]:port"; names in any case.
  bool Allow(std::string_view host) const;

 private:
  std::set<std::string, std::less<>> names_;  // lower case
  bool all_ = false;
};

}  // namespace fusion
