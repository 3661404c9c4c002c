#include "core/base/parallel.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace fusion {

void ParallelFor(int threads, int64_t n, const std::function<void(int64_t, int64_t)>& body) {
  int64_t parts = std::min<int64_t>(threads, n);
  if (parts <= 1) {
    if (n > 0) body(0, n);
    return;
  }
  std::vector<std::thread> workers;
  auto begin = [&](int64_t part) { return n * part / parts; };
  for (int64_t p = 1; p < parts; ++p) {
    workers.emplace_back([&, p] { body(begin(p), begin(p + 1)); });
  }
  body(0, begin(1));
  for (std::thread& worker : workers) worker.join();
}

}  // namespace fusion
