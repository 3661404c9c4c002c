#pragma once

#include <string>

#include "core/base/files/unique_fd.h"

namespace fusion {

/// An answer over HTTP/1.
struct HttpAnswer {
  int code = 0;  // 0: none came
  std::string headers;
  std::string body;
};

/// A connection to "host:port", from an address of this machine ("127.0.0.2") if one is given.
/// Reads give up after half a minute. Invalid if it does not work.
UniqueFd HttpConnect(const std::string& address, const std::string& from = "");

/// False if the other side has hung up.
bool HttpSend(const UniqueFd& connection, const std::string& bytes);

/// Reads until the other side hangs up.
HttpAnswer HttpRead(const UniqueFd& connection);

/// Sends `request` as it is, on a connection of its own.
HttpAnswer HttpAsk(const std::string& address, const std::string& request);
HttpAnswer HttpGet(const std::string& address, const std::string& path);

}  // namespace fusion
