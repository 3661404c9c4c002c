#pragma once

#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace fusion {

/// Names the calling thread. `top -H`, debuggers and /proc/PID/task/TID/comm show the name. Linux
/// keeps its first 15 bytes.
void NameThread(std::string_view name);

/// Starts a thread with a name. All our threads are started by this function; server/README.md
/// lists the names ("Running it"). Throws std::system_error, as std::thread does, if no thread can
/// be started.
///
///   thread_ = NamedThread("memory-guard", [this] { Watch(); });
template <typename Body>
std::thread NamedThread(std::string name, Body body) {
  return std::thread([name = std::move(name), body = std::move(body)]() mutable {
    NameThread(name);
    body();
  });
}

}  // namespace fusion
