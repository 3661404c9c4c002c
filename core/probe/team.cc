#include "core/probe/team.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/threads/named_thread.h"

namespace fusion {
namespace {

double SecondsOf(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct alignas(64) Part {
  double work = 0;
  double end_s = 0;
  double cpu_s = 0;
};

void DoPart(const std::function<double(int)>& body, int thread, Part* part) {
  const double cpu = SecondsOf(CLOCK_THREAD_CPUTIME_ID);
  part->work = body(thread);
  part->end_s = SecondsOf(CLOCK_MONOTONIC);
  part->cpu_s = SecondsOf(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

}  // namespace

Burst RunOnThreads(int threads, const std::function<double(int)>& body) {
  std::vector<Part> parts(static_cast<size_t>(std::max(threads, 1)));
  double begin_s = 0;
  if (parts.size() == 1) {
    begin_s = SecondsOf(CLOCK_MONOTONIC);
    DoPart(body, 0, &parts[0]);
  } else {
    std::atomic<size_t> ready{0};
    std::atomic<bool> go{false};
    std::atomic<bool> complete{true};
    std::vector<std::thread> team;
    team.reserve(parts.size());
    try {
      for (size_t t = 0; t < parts.size(); ++t) {
        team.push_back(NamedThread("probe", [&, t] {
          ready.fetch_add(1);
          while (!go.load()) std::this_thread::yield();
          if (complete.load()) DoPart(body, static_cast<int>(t), &parts[t]);
        }));
      }
    } catch (const std::system_error&) {  // no more threads
      complete.store(false);
      go.store(true);
      for (std::thread& thread : team) thread.join();
      throw;
    }
    while (ready.load() < parts.size()) std::this_thread::yield();
    begin_s = SecondsOf(CLOCK_MONOTONIC);
    go.store(true);
    for (std::thread& thread : team) thread.join();
  }
  Burst out;
  double work = 0;
  double end_s = begin_s;
  for (const Part& part : parts) {
    work += part.work;
    end_s = std::max(end_s, part.end_s);
    // A thread that begins late had no core either.
    const double wall_s = std::max(part.end_s - begin_s, 1e-9);
    out.cpu_share = std::min(out.cpu_share, part.cpu_s / wall_s);
  }
  out.work_per_s = work / std::max(end_s - begin_s, 1e-9);
  return out;
}

}  // namespace fusion
