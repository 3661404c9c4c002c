#include "core/probe/task_costs.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/base/statistics/quantile.h"

namespace fusion {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kBusySeconds = 20e-6;
constexpr double kTaskSeconds = 5e-6;
constexpr int kTasksPerThread = 64;
constexpr int kBatch = 64;  // events in one reading of the clock where they follow each other

double SecondsSince(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

void BusyFor(double seconds) {
  const SteadyClock::time_point begin = SteadyClock::now();
  while (SecondsSince(begin) < seconds) {
  }
}

void Nothing(int64_t begin, int64_t end, int) {
  for (int64_t task = begin; task < end; ++task) asm volatile("" : : "r"(task));
}

// The lower quartile of what `once` returns, for that many seconds; at least nine samples.
template <class F>
double QuartileWithin(double seconds, const F& once) {
  std::vector<double> samples;
  const SteadyClock::time_point begin = SteadyClock::now();
  while (samples.size() < 9 || (SecondsSince(begin) < seconds && samples.size() < 100'000)) {
    samples.push_back(once());
  }
  return Quantile(std::move(samples), 0.25);
}

// Seconds of one of kBatch runs of `tasks` tasks that do nothing.
double OneOfBatch(TaskPool* pool, int64_t tasks) {
  const TaskBody body = Nothing;
  const SteadyClock::time_point begin = SteadyClock::now();
  for (int i = 0; i < kBatch; ++i) pool->Run(tasks, body);
  return SecondsSince(begin) / kBatch;
}

}  // namespace

TaskCosts::TaskCosts(int threads) : alone_(1), pool_(threads) {}

double TaskCosts::Launch(double seconds) {
  const TaskBody body = Nothing;
  return QuartileWithin(seconds, [&] {
    BusyFor(kBusySeconds);
    const SteadyClock::time_point begin = SteadyClock::now();
    pool_.Run(pool_.threads(), body);
    return SecondsSince(begin);
  });
}

double TaskCosts::Barrier(double seconds) {
  std::vector<char> worked(static_cast<size_t>(pool_.threads()));
  const TaskBody body = [&](int64_t begin, int64_t end, int worker) {
    worked[static_cast<size_t>(worker)] = 1;
    for (int64_t task = begin; task < end; ++task) BusyFor(kTaskSeconds);
  };
  std::vector<double> whole;  // of runs in which every thread worked
  const double any = QuartileWithin(seconds, [&] {
    std::fill(worked.begin(), worked.end(), 0);
    const SteadyClock::time_point begin = SteadyClock::now();
    pool_.Run(pool_.threads(), body);
    const double took_s = std::max(SecondsSince(begin) - kTaskSeconds, 1e-9);
    if (std::find(worked.begin(), worked.end(), 0) == worked.end()) whole.push_back(took_s);
    return took_s;
  });
  return whole.empty() ? any : Quantile(std::move(whole), 0.25);
}

double TaskCosts::Relaunch(double seconds) {
  return QuartileWithin(seconds, [&] { return OneOfBatch(&pool_, pool_.threads()); });
}

double TaskCosts::Call(double seconds) {
  return QuartileWithin(seconds, [&] { return OneOfBatch(&alone_, 1); });
}

double TaskCosts::Task(double seconds) {
  const int64_t threads = pool_.threads();
  if (threads == 1) return 0;
  const double many =
      QuartileWithin(seconds / 2, [&] { return OneOfBatch(&pool_, threads * kTasksPerThread); });
  const double one = QuartileWithin(seconds / 2, [&] { return OneOfBatch(&pool_, threads); });
  return std::max(many - one, 0.0) / (kTasksPerThread - 1);
}

}  // namespace fusion
