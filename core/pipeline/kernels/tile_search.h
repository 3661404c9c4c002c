#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/bundle/tile_search.h"
#include "core/compile/worker_pool.h"
#include "core/device/device_spec.h"
#include "core/plan/planner.h"

namespace fusion {

/// What a level of PlanOptions::opt_level may spend.
struct SearchBudget {
  size_t others = 0;          // ways to cut one kernel that are tried beside the model's pick
  Nanoseconds limit{0};       // of the whole search
  Nanoseconds race_limit{0};  // of timing one kernel with its others
};
SearchBudget BudgetOf(int opt_level);

/// Times of the rival and the pick, run in pairs: it takes the pick's place if the 95 % interval of
/// the median of their ratios ends below this. Of kernels whose rival is as fast as the pick one in
/// forty would change for nothing if it were 1; two percent is also less than anybody would notice.
inline constexpr double kMostRatio = 0.98;
/// Pairs of which there is an interval (MedianOf): where a race ends early, fewer than it has by
/// default are enough.
inline constexpr int kLeastPairs = 6;

/// What searches for tiles have come to since the start.
struct SearchStats {
  int64_t searches = 0;   // that have ended, cut short ones too
  int64_t measured = 0;   // candidates that were timed
  int64_t recalled = 0;   // that had been timed for another plan
  int64_t dropped = 0;    // that did not compile, or are wrong
  int64_t changed = 0;    // kernels that are not cut as the model picked
  int64_t cut_short = 0;  // searches
};

/// A way to cut a kernel, with what compiles it.
struct SearchedCut {
  LockedChoice choice;
  std::string tiles;
  double estimated_us = 0;
  CompileJob job;
};

/// A kernel to search for.
struct SearchedKernel {
  std::vector<int> ops;         // TunedKernel::ops
  int group = -1;               // likewise
  int64_t displaced_bytes = 0;  // KernelRace::displaced_bytes
  int64_t run_bytes = 0;        // of the tensors that the pick reads and writes
  SearchedCut pick;             // the model's
  /// At most so many others, the most promising first; fails only because the time is over.
  std::function<absl::StatusOr<std::vector<SearchedCut>>(size_t most)> others;
};

/// Where kernels are made and timed, and what is known of them from before.
class TileBench {
 public:
  virtual ~TileBench() = default;
  /// Compiled and checked kernels, one for each job; errors as CompileTicket::Wait gives them. Once
  /// `until` has ended nothing more is begun.
  virtual std::vector<CompileResult> Make(const std::vector<CompileJob>& jobs,
                                          const CancelToken& until) = 0;
  /// Begins when the race before has ended, and gets no more time than `until` leaves when a worker
  /// begins with it. Fails as RaceTicket::Wait.
  virtual absl::StatusOr<RaceTimes> Race(KernelRace race, const CancelToken& until) = 0;
  /// Whether kernels of others had the workers while something was to be made or timed.
  virtual bool waited_for_others() const = 0;
  /// What became of an equal race of this kernel, the model's pick.
  virtual std::optional<TunedKernel> Recall(const Digest& pick, const Digest& race) = 0;
  virtual void Keep(const Digest& pick, MeasuredTiles measured) = 0;
};

/// A search to be made.
struct SearchTask {
  int level = 0;
  std::string label;    // of the device whose kernels they are: a digest of DeviceSpec::KeyText
  std::string machine;  // whose times they are, MachineName
  int threads = 1;
  std::vector<SearchedKernel> kernels;  // those that are worth most first
  std::string left_out;                 // TileChoices::left_out
};

/// Measures which tiles are the fastest, kernel by kernel: compiles what is tried, times it beside
/// the model's pick, and then the fastest against the pick in pairs (kMostRatio). What does not
/// compile, or is wrong, drops out. Ends when `until` does, a token of `request` with the limit of
/// the level; what is measured by then counts, and the rest stays as the model picked. Then it is
/// done. It is cut short, for the next request to go on, if something was left that another time
/// may measure: the request has ended, kernels of others had the workers for a part of the level's
/// time, or a kernel could not be tried for a reason that may pass (a full queue, a service that
/// stops, a worker that died). Never fails: what goes wrong is a reason. `on_kernel` (may be empty)
/// is told how many kernels are done.
TileSearch SearchTiles(const SearchTask& task, TileBench& bench, const CancelToken& request,
                       const CancelToken& until, const Clock& clock,
                       const std::function<void(int done)>& on_kernel = nullptr);

/// The search of a plan that is asked for with `level`: pending, or none with the reason.
TileSearch StartOfSearch(int level, const DeviceSpec& device, bool family, bool guard);

/// Bytes of other memory that stand for what the other kernels of a plan, which move `others_bytes`
/// in a run, do to the caches of a device: twice the largest cache level that holds less. Caches
/// are what the caller says of its machine: not more than `most`.
int64_t DisplacedBytes(const DeviceSpec& device, int64_t others_bytes, int64_t most);

/// The largest DisplacedBytes on a machine (core/device/host_cpu.h): twice its caches, as far as
/// they are known, and at most kMostDisplacedBytes.
int64_t MostDisplacedBytes(const Target& machine);
inline constexpr int64_t kMostDisplacedBytes = int64_t{256} << 20;

/// The machine for names of races and for people: "GenuineIntel family 6 model 143".
std::string MachineName(const Target& machine);

}  // namespace fusion
