#include "tests/support/http.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdlib>

#include "core/base/text/text.h"

namespace fusion {

UniqueFd HttpConnect(const std::string& address, const std::string& from) {
  const size_t colon = address.rfind(':');
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints,
                  &found) != 0) {
    return {};
  }
  UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit = {.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (!from.empty()) {
    sockaddr_in local{};
    local.sin_family = AF_INET;
    inet_pton(AF_INET, from.c_str(), &local.sin_addr);
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&local), sizeof(local)) != 0) fd.Reset();
  }
  if (fd.valid() && connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0) fd.Reset();
  freeaddrinfo(found);
  return fd;
}

bool HttpSend(const UniqueFd& connection, const std::string& bytes) {
  return send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

HttpAnswer HttpRead(const UniqueFd& connection) {
  HttpAnswer answer;
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(connection.get(), buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  const size_t blank = text.find("\r\n\r\n");
  if (blank == std::string::npos || text.size() < 12) return answer;
  answer.code = std::atoi(text.c_str() + 9);
  answer.headers = text.substr(0, blank);
  answer.body = text.substr(blank + 4);
  return answer;
}

HttpAnswer HttpAsk(const std::string& address, const std::string& request) {
  const UniqueFd connection = HttpConnect(address);
  if (!connection.valid() || !HttpSend(connection, request)) return {};
  return HttpRead(connection);
}

HttpAnswer HttpGet(const std::string& address, const std::string& path) {
  return HttpAsk(address, StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
}

}  // namespace fusion
