#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/bundle/plan_lock.h"

namespace fusion {

// Results of the measured search for tiles (PlanOptions::opt_level), as stored with plans and
// kernels. "The model's pick" is the tiling that the benefit model chose. Plain values.

/// Progress of the search for a plan.
enum class TileSearchState : uint8_t {
  kNone,      // no search; if TileSearch::level > 0, TileSearch::reason says why
  kPending,   // nothing has been timed yet; all tilings are the model's picks
  kCutShort,  // stopped before all candidates were timed; the next request continues
  kDone,
};

/// A tiling of a kernel with its measured time.
struct TriedTiling {
  LockedChoice choice;
  std::string tiles;        // for people, as PlanGroup::tiles
  double estimated_us = 0;  // by the benefit model
  int runs = 0;             // number of timed runs; 0: `reason` says why
  double median_us = 0;     // of the timed runs
  double low_us = 0;        // 95 % interval of the median
  double high_us = 0;
  std::string reason = {};  // why it was not timed, such as a failed compilation or check
};

/// A kernel of a plan with the tilings that were tried.
struct TunedKernel {
  /// The ops of one of the groups that it runs, as LockedGroup::ops. It runs all equal groups.
  std::vector<int> ops;
  int group = -1;  // position of that group in Plan::groups; -1: unknown
  /// The model's pick, then others by estimate. If the kernel was not searched: at most the pick.
  std::vector<TriedTiling> tried = {};
  int chosen = 0;  // position in `tried`; 0: the model's pick stays
  /// The final comparison: the fastest other tiling (the rival) and the pick ran alternately. All 0
  /// if no other tiling was faster.
  int rival = 0;         // position in `tried`
  int pairs = 0;         // number of pairs of runs
  double ratio = 0;      // median of rival's time / pick's time
  double ratio_low = 0;  // 95 % interval of the median
  double ratio_high = 0;
  std::string reason = {};  // why `chosen` was chosen
  bool recalled = false;    // the times were measured for another plan and reused
};

/// The search for the tiles of one plan.
struct TileSearch {
  int level = 0;  // PlanOptions::opt_level
  TileSearchState state = TileSearchState::kNone;
  std::string reason = {};                // why kNone or kCutShort, or why kernels were left out
  std::string conditions = {};            // of the measurements, for people
  double seconds = 0;                     // wall time of the search
  int64_t measured = 0;                   // candidates timed, without the model's picks
  int64_t recalled = 0;                   // likewise, with times reused from other plans
  int64_t changed = 0;                    // kernels whose tiling is not the model's pick
  std::vector<TunedKernel> kernels = {};  // by share of the estimated time, largest first
};

/// The result of a search for one kernel, stored with the kernel that was the model's pick.
struct MeasuredTiles {
  Digest race;  // of all kernels that ran and of the conditions
  TunedKernel result;
};

/// Number of results that a kernel keeps, the newest ones.
inline constexpr size_t kMaxMeasuredTiles = 8;

/// Wall time in seconds of the search of a level (PlanOptions::opt_level); 0 for level 0. Chosen,
/// not measured: 10 s are what people wait for, a minute is for a build, four are for a release.
inline constexpr int SecondsOfLevel(int level) {
  return level == 1 ? 10 : level == 2 ? 60 : level == 3 ? 240 : 0;
}

/// True if the next request that compiles should continue the search.
inline bool GoesOn(const TileSearch& search) {
  return search.state == TileSearchState::kPending || search.state == TileSearchState::kCutShort;
}

}  // namespace fusion
