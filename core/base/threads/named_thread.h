#pragma once

#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace fusion {

/// Names the calling thread, as `top -H`, debuggers and /proc/PID/task/TID/comm show it. Linux
/// keeps 15 bytes of a name; the rest is cut off.
void NameThread(std::string_view name);

/// Starts a thread with a name. Every thread of ours is started here; server/README.md lists the
/// names
/// ("Running it"). Throws std::system_error, as std::thread does, where no more threads are to be
/// had.
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
