#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/bundle/rules/rules.h"
#include "core/tensor/bound_strides.h"
#include "core/tensor/shared_buffer.h"

namespace fusion {

/// Required exactness of results. Part of the plan key.
enum class Numerics : uint8_t {
  kFp32Accumulate,  // default: f32 arithmetic, sums in any order, fused multiply-add
  kBitwise,  // equals our own op-by-op plan bit for bit: sums in index order, no fused multiply-add
  kFast,  // as the default, but may round operands of matrix products to bf16 where that is faster
          // (core/rewrite/low_precision.h)
};

enum class FusionMode : uint8_t {
  kFused,   // default: groups chosen by estimated benefit
  kOpByOp,  // one kernel per normalised node: the baseline
};

enum class PlanMode : uint8_t {
  kCompile,     // default: reply when every kernel is compiled and checked
  kPlanOnly,    // reply with plan and estimates, compile nothing
  kByDeadline,  // reply after `ready_within` with the kernels that are ready; the others continue
                // to compile and are fetched by key
};

/// Facts about the runtime that are not in the graph. Plan keys contain the bucket of a pressure
/// (IsHighPressure), not its value.
struct Hints {
  double memory_pressure = 0;   // 0..1
  double compute_pressure = 0;  // 0..1
  /// Binds the leading dim of each input whose leading dim is symbolic. 0: not given.
  int64_t batch_size = 0;
  /// Prefer latency over memory: kernels of a layer may become phases of one launch. Ignored if
  /// memory pressure is high.
  bool low_latency = false;
};

/// The bucket of a pressure. Keys and decisions use only this.
inline bool IsHighPressure(double pressure) { return pressure > 0.8; }

struct PlanLock;

/// The values of a symbolic dim for which a plan is made: multiples of `multiple` from `least` to
/// `most`.
struct DimRange {
  int64_t least = 1;
  int64_t most = 1;
  int64_t multiple = 1;
  int64_t likely = 0;  // the most frequent value; 0: unknown
  bool operator==(const DimRange&) const = default;
};

/// Maximum number of symbols of a plan.
inline constexpr size_t kMaxPlanSymbols = 4;

/// Maximum value of an open dim.
inline constexpr int64_t kMaxOpenExtent = int64_t{1} << 30;

/// The largest PlanOptions::opt_level.
inline constexpr int kMaxOptLevel = 3;

/// InvalidArgument unless 1 <= multiple <= kMaxOpenExtent, 0 <= least <= most <= kMaxOpenExtent,
/// `likely` is 0 or within least..most, and all three are multiples of `multiple`.
absl::Status CheckRange(const DimRange& range);

struct PlanOptions {
  FusionMode fusion = FusionMode::kFused;
  Numerics numerics = Numerics::kFp32Accumulate;
  Hints hints;
  /// Values of symbolic dims, by name.
  std::map<std::string, int64_t> dim_bindings;
  /// Symbolic dims that stay open, by name: one plan serves all values of the range. At most
  /// kMaxPlanSymbols.
  std::map<std::string, DimRange> dim_ranges;
  /// Names of intermediate tensors to return as additional outputs.
  std::vector<std::string> keep_outputs;
  /// Outputs that share the memory of an input, such as caches of keys and values.
  std::vector<SharedNames> shared_buffers;
  /// Inputs and outputs that are not dense and row-major in the caller's memory. With open dims the
  /// strides are the same for all their values.
  std::vector<NamedStrides> bound_strides;
  /// Definitions of custom ops of the graph, in the language of core/custom/custom_ops.h.
  std::string custom_ops;
  /// Overrides of the planner. FusionMode::kOpByOp ignores them.
  Rules rules;
  /// Also search for plans with less memory or less compile time, for Plan::frontier. Does not
  /// change the chosen plan.
  bool frontier = false;
  /// Compile kernels with symbols and line tables. Their code is the same.
  bool debug = false;
  /// Kernels check the bounds of every access and report the first one outside its tensor. Much
  /// slower; the schedules are the same.
  bool guard = false;
  /// Effort of the measured search for tiles, 0..kMaxOptLevel: kernels are compiled with several
  /// tilings and timed on the service's machine, and the fastest is used
  /// (core/tune/tile_search.h). 0: the benefit model alone decides.
  int opt_level = 0;
  /// Groups and tilings to use instead of the planner's choice. Null: the planner chooses.
  std::shared_ptr<const PlanLock> lock;
  /// The tenant that alone may use the plan and its kernels. Empty: they are shared. Set by the
  /// service; not sent over the wire.
  std::string tenant = {};
};

}  // namespace fusion
