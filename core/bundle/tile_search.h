#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/bundle/plan_lock.h"

namespace fusion {

// What a search for better tiles has measured (PlanOptions::opt_level), as plans and kernels keep
// it. Plain values.

/// How far the search of a plan got.
enum class TileSearchState : uint8_t {
  kNone,      // there is none; with a level, TileSearch::reason says why
  kPending,   // the plan is the model's, and nothing of it has been timed yet
  kCutShort,  // something was left that another time may measure: the next request goes on
  kDone,
};

/// A way to cut a kernel, and what it took.
struct TriedCut {
  LockedChoice choice;
  std::string tiles;        // for people, as PlanGroup::tiles
  double estimated_us = 0;  // by the model
  int runs = 0;             // that were timed; 0: none, `reason` says why
  double median_us = 0;     // of those runs
  double low_us = 0;        // its 95 % interval
  double high_us = 0;
  std::string reason = {};  // why it was not timed: it does not compile, its check refuses it
};

/// A kernel of a plan with the ways to cut it that were tried.
struct TunedKernel {
  /// Which groups it runs: those that equal this one, positions in the program as
  /// LockedGroup::ops.
  std::vector<int> ops;
  int group = -1;  // the first of them in Plan::groups; -1: not known yet
  /// The model's pick, then others by estimate. Of a kernel that was not searched the first alone,
  /// or nothing.
  std::vector<TriedCut> tried = {};
  int chosen = 0;  // position in `tried`; 0: the model's pick stays
  /// Of the fastest other one and the pick, run once more in pairs: the median of the ratios of
  /// their times, and its 95 % interval. 0: there was no other, or it was no faster.
  int rival = 0;
  int pairs = 0;
  double ratio = 0;
  double ratio_low = 0;
  double ratio_high = 0;
  std::string reason = {};  // why it is cut as it is
  bool recalled = false;    // measured for another plan, and not again
};

/// The search of a plan.
struct TileSearch {
  int level = 0;  // PlanOptions::opt_level
  TileSearchState state = TileSearchState::kNone;
  std::string reason = {};      // of kNone and kCutShort, and of kernels that take no part: why
  std::string conditions = {};  // under which kernels were timed, for people
  double seconds = 0;           // that it took
  int64_t measured = 0;         // candidates that were timed for it, the model's picks not counted
  int64_t recalled = 0;         // likewise, for other plans before
  int64_t changed = 0;          // kernels that are not the model's picks
  std::vector<TunedKernel> kernels = {};  // those with most of the estimated time first
};

/// A search of one kernel as the kernel that was the model's pick keeps it.
struct MeasuredTiles {
  Digest race;  // of all that was run and under which conditions
  TunedKernel result;
};

/// Searches that a kernel keeps, the newest ones.
inline constexpr size_t kMaxMeasuredTiles = 8;

/// True if a request that may compile has something to search for.
inline bool GoesOn(const TileSearch& search) {
  return search.state == TileSearchState::kPending || search.state == TileSearchState::kCutShort;
}

}  // namespace fusion
