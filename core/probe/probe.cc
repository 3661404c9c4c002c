#include "core/probe/probe.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <system_error>

#include "core/base/clock.h"
#include "core/base/statistics/quantile.h"
#include "core/base/text/text.h"
#include "core/base/utc_time.h"
#include "core/device/host_cpu.h"
#include "core/device/host_isa.h"
#include "core/probe/arithmetic.h"
#include "core/probe/streams.h"
#include "core/probe/task_costs.h"
#include "core/probe/team.h"
#include "core/runtime/usable_cores.h"

namespace fusion {
namespace {

constexpr int kLeastRounds = 3;
constexpr int kMostRounds = 100;
constexpr int kWantedRounds = 10;
constexpr double kLeastBurstSeconds = 3e-4;
constexpr double kMostBurstSeconds = 0.05;
constexpr double kWholeCore = 0.9;    // CPU share of a burst that was not disturbed
constexpr double kSteadyClock = 0.2;  // width of the interval of a rate, relative to its median

// As much of a shared cache as counts in device specs, and of memory beyond it.
constexpr int64_t kSharedBytesPerThread = int64_t{32} << 20;
constexpr int64_t kLeastMemoryBytes = int64_t{64} << 20;
constexpr int64_t kMostMemoryBytes = int64_t{256} << 20;

// One constant: how a burst of it is measured, and what came out so far.
struct Measured {
  std::string name;
  // Measures for about so many seconds: the value, and the least CPU share of its threads.
  std::function<Burst(double)> burst;
  std::vector<Burst> bursts;
};

// Bursts of a loop whose steps are so short that their number follows from the rate before.
std::function<Burst(double)> LoopBursts(WorkLoop loop, int threads) {
  auto steps = std::make_shared<long>(1000);
  return [loop, threads, steps](double seconds) {
    for (;;) {
      const Burst burst = RunOnThreads(threads, [&](int) { return loop(*steps); });
      const double took_s =
          loop(1) * static_cast<double>(*steps) * threads / std::max(burst.work_per_s, 1.0);
      const bool long_enough = took_s > seconds / 4;
      const double wanted = static_cast<double>(*steps) * seconds / std::max(took_s, 1e-7);
      *steps = static_cast<long>(std::clamp(wanted, 100.0, 1e10));
      if (long_enough) return burst;
    }
  };
}

// Memory of every thread, and how far each has come in it.
struct Area {
  std::vector<std::unique_ptr<Streams>> of_thread;
  std::vector<int64_t> at;
};

// Bursts of passes over the memory of threads. With one thread, it takes those of all in turn if
// `visits_all`, so that caches of one thread hold none of it.
std::function<Burst(double)> StreamBursts(std::shared_ptr<Area> area, StreamPass pass, int threads,
                                          bool visits_all) {
  auto bytes = std::make_shared<double>(1 << 20);  // of one thread, in one burst
  return [area, pass, threads, visits_all, bytes](double seconds) {
    constexpr double kBytesPerFloat = 3 * sizeof(float);
    for (;;) {
      const auto floats = std::max<int64_t>(static_cast<int64_t>(*bytes / kBytesPerFloat), 1024);
      const Burst burst = RunOnThreads(threads, [&](int thread) {
        auto t = static_cast<size_t>(thread);
        int64_t left = floats / 64 * 64;
        int64_t done = 0;
        while (left > 0) {
          const Streams& streams = *area->of_thread[t];
          int64_t begin = area->at[t];
          const int64_t end = std::min(begin + left, streams.array_floats());
          pass(streams, begin, end);
          done += end - begin;
          left -= end - begin;
          area->at[t] = end == streams.array_floats() ? 0 : end;
          if (area->at[t] == 0 && visits_all && threads == 1) t = (t + 1) % area->at.size();
        }
        return static_cast<double>(done) * kBytesPerFloat;
      });
      const double took_s = *bytes * threads / std::max(burst.work_per_s, 1.0);
      const bool long_enough = took_s > seconds / 4;
      *bytes = std::clamp(*bytes * seconds / std::max(took_s, 1e-7), 1024.0 * kBytesPerFloat, 1e12);
      if (long_enough) return burst;
    }
  };
}

// The list of what is measured, and what it needs.
class ProbeList {
 public:
  ProbeList(Isa isa, int threads) : isa_(isa), threads_(threads), costs_(threads) {}

  void AddAll() {
    AddProducts("", DType::kF32);
    AddProducts("bf16.", DType::kBF16);
    AddProducts("i8.", DType::kI8);
    AddBoth("", "scalar_rate",
            [&](int threads) { return LoopBursts(AdditionLoop(isa_), threads); });
    AddLevels();
    AddCosts();
  }
  std::vector<Measured>& measured() { return measured_; }

 private:
  void AddBoth(std::string_view prefix, std::string_view name,
               const std::function<std::function<Burst(double)>(int)>& bursts) {
    measured_.push_back({StrCat(prefix, name), bursts(1), {}});
    measured_.push_back({StrCat(prefix, "total_", name), bursts(threads_), {}});
  }

  void AddProducts(std::string_view prefix, DType type) {
    const WorkLoop loop = ProductLoop(type, isa_);
    if (loop == nullptr) return;
    AddBoth(prefix, "product_rate", [&](int threads) { return LoopBursts(loop, threads); });
  }

  void AddLevel(std::string_view name, int64_t bytes_of_thread, bool memory) {
    auto area = std::make_shared<Area>();
    area->at.resize(static_cast<size_t>(threads_), 0);
    // Two tensors are read and one is written; outputs beyond the caches go past them.
    const StreamPass pass = FindStreamPass(2, 1, /*streaming=*/memory, isa_);
    area->of_thread.resize(area->at.size());
    RunOnThreads(threads_, [&](int t) {  // each thread touches its own first
      try {
        area->of_thread[static_cast<size_t>(t)] = std::make_unique<Streams>(2, 1, bytes_of_thread);
      } catch (const std::bad_alloc&) {
        return 0.0;
      }
      return 1.0;
    });
    for (const auto& streams : area->of_thread) {
      if (streams == nullptr) throw std::bad_alloc();
    }
    AddBoth(StrCat(name, "."), "bandwidth",
            [&](int threads) { return StreamBursts(area, pass, threads, memory); });
  }

  void AddLevels() {
    const Target host = HostCpu();
    if (host.l1_bytes > 0) AddLevel("l1", host.l1_bytes / 2, false);
    if (host.l2_bytes > host.l1_bytes) AddLevel("l2", host.l2_bytes / 2, false);
    const int64_t shared = std::min(host.l3_bytes, kSharedBytesPerThread * threads_);
    const int64_t third = shared / threads_ / 2;  // of a thread; not in its second level
    if (third >= host.l2_bytes) AddLevel("l3", third, false);
    const int64_t last = std::max(shared, host.l2_bytes * threads_);
    int64_t bytes = std::clamp(4 * last, kLeastMemoryBytes, kMostMemoryBytes);
    const int64_t free = int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE);
    if (free > 0) bytes = std::min(bytes, std::max<int64_t>(free / 2, 8 << 20));
    AddLevel("memory", bytes / threads_, true);
  }

  void AddCost(const char* name, double (TaskCosts::*measure)(double)) {
    measured_.push_back({name,
                         [this, measure](double seconds) {
                           // The caller never sleeps, so its share of a core is that of the burst.
                           double value = 0;
                           Burst burst = RunOnThreads(1, [&](int) {
                             value = (costs_.*measure)(seconds);
                             return value;
                           });
                           burst.work_per_s = value;
                           return burst;
                         },
                         {}});
  }

  void AddCosts() {
    AddCost("launch", &TaskCosts::Launch);
    AddCost("barrier", &TaskCosts::Barrier);
    AddCost("relaunch", &TaskCosts::Relaunch);
    AddCost("call", &TaskCosts::Call);
    if (threads_ > 1) AddCost("task", &TaskCosts::Task);
  }

  const Isa isa_;
  const int threads_;
  TaskCosts costs_;
  std::vector<Measured> measured_;
};

// The bursts that count: undisturbed ones, or, where these are fewer than three, the three that
// were disturbed least.
std::vector<double> Counted(std::vector<Burst> bursts) {
  std::stable_sort(bursts.begin(), bursts.end(),
                   [](const Burst& a, const Burst& b) { return a.cpu_share > b.cpu_share; });
  std::vector<double> out;
  for (const Burst& burst : bursts) {
    if (out.size() >= kLeastRounds && burst.cpu_share < kWholeCore) break;
    out.push_back(burst.work_per_s);
  }
  return out;
}

ProbedConstant Summarised(const Measured& measured) {
  const MeasurableConstant& constant = MeasurableConstants().at(measured.name);
  std::vector<double> counted = Counted(measured.bursts);
  std::sort(counted.begin(), counted.end());
  auto at = [&](double part) {
    return std::clamp(QuantileOfSorted(counted, part), constant.least, constant.most);
  };
  // Disturbances make rates lower and costs higher, never the reverse.
  return {.name = measured.name,
          .unit = std::string(constant.unit),
          .value = at(constant.unit == "s" ? 0.25 : 0.75),
          .low = at(0.1),
          .high = at(0.9),
          .bursts = static_cast<int>(counted.size())};
}

std::vector<std::string> WarningsOf(const std::vector<Measured>& all,
                                    const std::vector<ProbedConstant>& details) {
  std::vector<std::string> out;
  int64_t bursts = 0;
  int64_t disturbed = 0;
  for (const Measured& measured : all) {
    for (const Burst& burst : measured.bursts) {
      ++bursts;
      if (burst.cpu_share < kWholeCore) ++disturbed;
    }
  }
  if (disturbed * 10 > bursts) {
    out.push_back(StrCat("other programs took cores in ", 100 * disturbed / bursts,
                         " % of the bursts; measure again when the machine is idle"));
  }
  std::vector<std::string> unsteady;
  for (const ProbedConstant& constant : details) {
    if (constant.high > 2 * constant.low) unsteady.push_back(constant.name);
  }
  if (!unsteady.empty()) {
    out.push_back(StrCat("bursts of one constant differ by more than a factor of two: ",
                         StrJoin(unsteady, ", ")));
  }
  for (const ProbedConstant& constant : details) {
    if (constant.name != "product_rate") continue;  // nothing but the clock and the core
    const double width = (constant.high - constant.low) / constant.value;
    if (width < kSteadyClock) continue;
    out.push_back(StrCat("the clock of the CPU changed, or other programs shared its cores: one ",
                         "thread reached ", std::lround(constant.low * 1e-9), " to ",
                         std::lround(constant.high * 1e-9), " Gflop/s"));
  }
  return out;
}

absl::Status CheckOptions(const ProbeOptions& options, Isa isa) {
  if (!(options.seconds >= kLeastProbeSeconds && options.seconds <= kMostProbeSeconds)) {
    return InvalidArgument("seconds: ", options.seconds, "; expected ", kLeastProbeSeconds, "..",
                           kMostProbeSeconds);
  }
  if (options.threads < 0 || options.threads > kMostProbeThreads) {
    return InvalidArgument("threads: ", options.threads, "; expected 0..", kMostProbeThreads);
  }
  if (HostRuns(isa)) return absl::OkStatus();
  return FailedPrecondition("isa: ", IsaName(isa), ", this machine has ", HostIsaName());
}

absl::StatusOr<ProbeResult> Measure(const ProbeOptions& options, Isa isa, int threads) {
  const Nanoseconds begin = Clock::Real().Now();
  auto elapsed_s = [&] {
    return std::chrono::duration<double>(Clock::Real().Now() - begin).count();
  };
  ProbeList list(isa, threads);
  list.AddAll();
  std::vector<Measured>& all = list.measured();
  const double left_s = std::max(options.seconds - elapsed_s(), options.seconds / 2);
  const double burst_s = std::clamp(left_s / (static_cast<double>(all.size()) * kWantedRounds),
                                    kLeastBurstSeconds, kMostBurstSeconds);
  for (int round = 0; round < kMostRounds; ++round) {
    if (round >= kLeastRounds && elapsed_s() >= options.seconds) break;
    for (Measured& measured : all) {
      if (options.stop()) return Cancelled("the probe was stopped");
      measured.bursts.push_back(measured.burst(burst_s));
    }
  }
  ProbeResult out;
  for (const Measured& measured : all) out.details.push_back(Summarised(measured));
  out.warnings = WarningsOf(all, out.details);
  out.constants.isa = IsaName(isa);
  out.constants.threads = threads;
  out.constants.date =
      UtcTimeText(std::chrono::system_clock::time_point(
                      std::chrono::duration_cast<std::chrono::system_clock::duration>(
                          Clock::Real().UnixTime())))
          .substr(0, 10);
  const std::string cpu = HostCpuName();
  out.constants.source = StrCat(options.program, ", ", cpu).substr(0, kMaxMeasuredSource);
  for (const ProbedConstant& constant : out.details) {
    out.constants.values[constant.name] = constant.value;
  }
  out.seconds = elapsed_s();
  return out;
}

}  // namespace

absl::StatusOr<ProbeResult> Probe(const ProbeOptions& options) {
  const std::optional<Isa> isa = options.isa ? options.isa : HostIsa();
  if (!isa) return FailedPrecondition("isa: this machine has ", HostIsaName());
  RETURN_IF_ERROR(CheckOptions(options, *isa));
  const int threads = options.threads > 0 ? options.threads : UsableCores();
  try {
    return Measure(options, *isa, std::min(threads, kMostProbeThreads));
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("no memory to measure with");
  } catch (const std::system_error& error) {
    return ResourceExhausted("no threads to measure with: ", error.what());
  }
}

}  // namespace fusion
