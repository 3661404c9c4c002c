#include "core/base/threads/parallel.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/threads/named_thread.h"

namespace fusion {

void ParallelFor(int threads, int64_t n, const std::function<void(int64_t, int64_t)>& body) {
  int64_t parts = std::min<int64_t>(threads, n);
  if (parts <= 1) {
    if (n > 0) body(0, n);
    return;
  }
  std::vector<std::thread> workers;
  workers.reserve(static_cast<size_t>(parts));
  auto begin = [&](int64_t part) { return n * part / parts; };
  int64_t started = 1;
  for (; started < parts; ++started) {
    try {
      workers.push_back(
          NamedThread("evaluate", [&, p = started] { body(begin(p), begin(p + 1)); }));
    } catch (const std::system_error&) {
      break;  // no more threads: this one does the rest
    }
  }
  body(0, begin(1));
  if (started < parts) body(begin(started), n);
  for (std::thread& worker : workers) worker.join();
}

}  // namespace fusion
