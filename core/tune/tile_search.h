#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/bundle/cost_terms.h"
#include "core/bundle/tile_search.h"
#include "core/compile/worker_pool.h"

namespace fusion {

/// The budget of one level of PlanOptions::opt_level. All 0 for level 0.
struct SearchBudget {
  size_t others = 0;          // other tilings of one kernel that are tried
  Nanoseconds limit{0};       // wall time of the whole search
  Nanoseconds race_limit{0};  // wall time of the race of one kernel
};
SearchBudget BudgetOf(int opt_level);

/// The fastest tiling (rival) and the one that the model chose (pick) run in pairs. The rival wins
/// if the 95 % interval of the median of their ratios ends below this. With 1, one in forty kernels
/// would change without being faster; 2 % is also too little to notice.
inline constexpr double kMostRatio = 0.98;
/// Least number of pairs for an interval (MedianOf). A race that ends early needs only this many.
inline constexpr int kLeastPairs = 6;

/// Counters of tile searches since the start of the service.
struct SearchStats {
  int64_t searches = 0;   // that have ended, also early
  int64_t measured = 0;   // candidates that were timed
  int64_t recalled = 0;   // candidates whose times of another plan were reused
  int64_t dropped = 0;    // candidates that did not compile or failed their check
  int64_t changed = 0;    // kernels whose tiling is not the model's pick
  int64_t cut_short = 0;  // searches that ended before all candidates were tried
};

/// A tiling of a kernel, with its compile job.
struct SearchedTiling {
  LockedChoice choice;
  std::string tiles;
  double estimated_us = 0;
  CompileJob job;
  // As in PlanGroup: what its times say about the benefit model.
  std::string bound = {};
  std::string form = {};
  CostTerms terms = {};
};

/// A kernel whose tilings are searched.
struct SearchedKernel {
  std::vector<int> ops;         // TunedKernel::ops
  int group = -1;               // TunedKernel::group
  int64_t displaced_bytes = 0;  // KernelRace::displaced_bytes
  int64_t run_bytes = 0;        // bytes of the tensors that the pick reads and writes
  SearchedTiling pick;          // the model's tiling
  /// Returns up to `most` other tilings, the best estimate first. Fails only if the time is over.
  std::function<absl::StatusOr<std::vector<SearchedTiling>>(size_t most)> others;
};

/// Compiles and times kernels, and keeps earlier measurements. An interface for tests. Used by one
/// thread.
class TileBench {
 public:
  virtual ~TileBench() = default;
  /// Compiles and checks `jobs`; one result for each, errors as CompileTicket::Wait. Starts nothing
  /// after `until` has ended.
  virtual std::vector<CompileResult> Make(const std::vector<CompileJob>& jobs,
                                          const CancelToken& until) = 0;
  /// Runs a race after the previous one has ended, for at most the time that `until` leaves when a
  /// worker starts it. Errors as RaceTicket::Wait.
  virtual absl::StatusOr<RaceTimes> Race(KernelRace race, const CancelToken& until) = 0;
  /// True if jobs of other requests occupied the workers during Make or Race.
  virtual bool waited_for_others() const = 0;
  /// The stored result of race `race` (a digest of all that can change its times) of kernel `pick`.
  virtual std::optional<TunedKernel> Recall(const Digest& pick, const Digest& race) = 0;
  virtual void Keep(const Digest& pick, MeasuredTiles measured) = 0;
  /// Called for each tiling that a race has timed. `us`: all its runs, in microseconds.
  virtual void NoteTimes(const Digest& pick, const SearchedTiling& tiling,
                         const std::vector<double>& us) = 0;
};

/// The input of a search.
struct SearchTask {
  int level = 0;
  std::string label;    // a digest of DeviceSpec::KeyText of the target
  std::string machine;  // MachineName of the machine that measures
  int threads = 1;
  std::vector<SearchedKernel> kernels;  // most estimated time first
  std::string left_out;                 // TileChoices::left_out
};

/// Finds the fastest tiling of each kernel: compiles the candidates, times them beside the model's
/// pick, and then times the fastest against the pick in pairs (kMostRatio). A candidate that does
/// not compile or fails its check drops out.
///
/// `until` is a token of `request` with the time limit of the level. When it ends, the measurements
/// so far count, and the other kernels keep the model's pick. State of the result: kNone if this
/// machine cannot time such kernels; kCutShort, so that a later request continues, if `request`
/// ended, if jobs of other requests took a part of the level's time, or if a kernel could not be
/// tried for a reason that may pass (full queue, stopping service, dead worker); else kDone. Never
/// fails: problems become reasons in the result. `on_kernel` (may be empty) gets the number of
/// finished kernels.
TileSearch SearchTiles(const SearchTask& task, TileBench& bench, const CancelToken& request,
                       const CancelToken& until, const Clock& clock,
                       const std::function<void(int done)>& on_kernel = nullptr);

}  // namespace fusion
