#pragma once

#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/device/target.h"

namespace fusion {

/// Kernels that compute the same function, to be timed side by side on this machine. All fields are
/// made by us; the binaries come from the workers.
struct KernelRace {
  struct Runner {
    std::string symbol;
    std::string binary;     // shared object
    std::string schedule;   // text form
    std::string reference;  // program text; all runners compute the same ops, but layouts of
                            // params may differ
  };
  std::string label;    // op types, for people
  std::string backend;  // whose loader loads the binaries
  Isa isa = Isa::kX86V2;
  /// The first is the baseline. Empty: only check whether this machine could run such kernels.
  std::vector<Runner> runners;
  int threads = 1;  // that run tasks, as a run of the plan would
  /// Bytes of other memory to read and write between two runs, in place of the other kernels of a
  /// plan, so that no kernel finds data in caches that would not survive a run of the plan.
  int64_t displaced_bytes = 0;
  /// Runs of each kernel: at least `least_runs`, then as many as fit in `wanted`, at most
  /// `most_runs`. Chosen, not measured: these runs only select the rival. A median of 5 tolerates
  /// two disturbed runs; beyond 25 it moves by less than the pairs can resolve.
  int least_runs = 5;
  int most_runs = 25;
  Nanoseconds wanted = std::chrono::milliseconds(150);
  /// Then, if another kernel is faster, the fastest one (the rival) runs in pairs with the first,
  /// with the same kind of limits; 0 pairs: not at all. Chosen: the 95 % interval of a median of 11
  /// excludes the least and the largest ratio, so one disturbed pair decides nothing; that of 51 is
  /// their middle third. With half a second per kernel, level 1 has time for ten to twenty kernels.
  int least_pairs = 11;
  int most_pairs = 51;
  Nanoseconds wanted_pairs = std::chrono::milliseconds(300);
  /// Time limit of the whole race, loading included. Measurements up to then are the result.
  Nanoseconds limit = std::chrono::seconds(10);
};

/// Most memory of a race: the params of all runners, scratch, and `displaced_bytes`. A quarter of
/// the default limit of a worker process (ServerConfig::worker_memory_bytes).
inline constexpr int64_t kMaxRaceBytes = int64_t{2} << 30;

/// Part of the remaining time of a race that is reserved for its start and for the return of the
/// answer. Chosen: about ten times what a worker needs for either.
inline constexpr Nanoseconds kRaceWayBack = std::chrono::milliseconds(100);

/// The result of a race. Times in microseconds.
struct RaceTimes {
  /// Why this machine cannot run the race as the plan would; then nothing was run. Empty: it was
  /// run.
  std::string refusal = {};
  struct Runner {
    std::string refusal = {};     // why it was not run; empty: it was
    std::vector<double> us = {};  // by round; rounds that all runners completed
  };
  std::vector<Runner> runners = {};   // as in the race
  int rival = 0;                      // the runner that ran in pairs with the first; 0: none
  std::vector<double> first_us = {};  // by pair
  std::vector<double> rival_us = {};
};

}  // namespace fusion
