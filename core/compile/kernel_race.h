#pragma once

#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/device/target.h"

namespace fusion {

/// Kernels that compute the same, to be timed side by side on this machine. All of it is made by
/// us; the binaries come from the workers.
struct KernelRace {
  struct Runner {
    std::string symbol;
    std::string binary;     // shared object
    std::string schedule;   // text form
    std::string reference;  // of the same ops as that of the others; its params may be packed
                            // otherwise
  };
  std::string label;    // op types, for people
  std::string backend;  // whose loader loads the binaries
  Isa isa = Isa::kX86V2;
  /// None: only whether they could run is found out. The first is the one to beat.
  std::vector<Runner> runners;
  int threads = 1;  // that run tasks, as in a run of the plan
  /// Bytes of other memory that are read and written between two runs, as the other kernels of a
  /// plan do: what a run does not leave in the caches of the machine, none of these finds there.
  int64_t displaced_bytes = 0;
  /// Runs of each: at least `least_runs`, then as many as `wanted` has time for, at most
  /// `most_runs`. Chosen, not measured: they only say which one runs against the first. A median of
  /// five stands two disturbed runs; beyond 25 it moves by less than the pairs can tell.
  int least_runs = 5;
  int most_runs = 25;
  Nanoseconds wanted = std::chrono::milliseconds(150);
  /// Then the fastest other one against the first, likewise, if it is faster: 0 pairs: not at all.
  /// Chosen: the 95 % interval of a median of 11 leaves out the least and the largest ratio, so one
  /// disturbed pair decides nothing; that of 51 is the middle third of them. Half a second a kernel
  /// in all is ten to twenty kernels in the time of level 1.
  int least_pairs = 11;
  int most_pairs = 51;
  Nanoseconds wanted_pairs = std::chrono::milliseconds(300);
  /// Of all of it, loading included: what is measured by then is the result.
  Nanoseconds limit = std::chrono::seconds(10);
};

/// Memory of a race, at most: the params of all runners, scratch, and `displaced_bytes`. A quarter
/// of what a worker process may have by default (ServerConfig::worker_memory_bytes).
inline constexpr int64_t kMaxRaceBytes = int64_t{2} << 30;

/// Of the time that is left for a race, this is for its start and for the answer to come back:
/// chosen, some ten times what a worker needs for either.
inline constexpr Nanoseconds kRaceWayBack = std::chrono::milliseconds(100);

/// What came out. Times in microseconds.
struct RaceTimes {
  /// Why nothing was run: this machine cannot do it as the plan would. Empty: it was.
  std::string refusal = {};
  struct Runner {
    std::string refusal = {};     // why it was not run; empty: it was
    std::vector<double> us = {};  // by round, as far as all of them came
  };
  std::vector<Runner> runners = {};   // as in the race
  int rival = 0;                      // the one that ran against the first once more; 0: none did
  std::vector<double> first_us = {};  // by pair
  std::vector<double> rival_us = {};
};

}  // namespace fusion
