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

/// How exact the results must be. Part of the plan key.
enum class Numerics : uint8_t {
  kFp32Accumulate,  // default: f32 arithmetic, sums in any order, fused multiply-add
  kBitwise,  // equals our own op-by-op plan bit for bit: sums in index order, no fused multiply-add
  kFast,  // additionally rounds operands of matrix products to bf16 (core/rewrite/low_precision.h);
          // a plan that does so nowhere is valid
};

enum class FusionMode : uint8_t {
  kFused,   // default: groups chosen by estimated benefit
  kOpByOp,  // one kernel per normalised node: the baseline
};

enum class PlanMode : uint8_t {
  kCompile,     // default: answer when every kernel is compiled and checked
  kPlanOnly,    // plan and estimates, nothing is compiled
  kByDeadline,  // whatever is ready at `ready_within`; the rest is compiled behind and fetched by
                // kernel key
};

/// What the runtime knows and the graph does not say. Pressures are 0..1 and are bucketed at 0.8
/// before they enter the key; batch_size (0: not given) binds the leading dim of every input whose
/// leading dim is symbolic.
struct Hints {
  double memory_pressure = 0;
  double compute_pressure = 0;
  int64_t batch_size = 0;
  /// Latency is wanted and memory free: kernels of a layer may become phases of one launch. Means
  /// nothing where memory pressure is high.
  bool low_latency = false;
};

/// The bucket of a pressure: only this enters keys and decisions.
inline bool IsHighPressure(double pressure) { return pressure > 0.8; }

struct PlanLock;

/// The values that a symbolic dim may have when a plan of its family runs: multiples of `multiple`
/// from `least` to `most`.
struct DimRange {
  int64_t least = 1;
  int64_t most = 1;
  int64_t multiple = 1;
  int64_t likely = 0;  // 0: not known
  bool operator==(const DimRange&) const = default;
};

/// Symbols that one plan may leave open.
inline constexpr size_t kMaxPlanSymbols = 4;

/// The largest value of a dim that stays open.
inline constexpr int64_t kMaxOpenExtent = int64_t{1} << 30;

/// The largest PlanOptions::opt_level.
inline constexpr int kMaxOptLevel = 3;

/// InvalidArgument unless 1 <= multiple, 0 <= least <= most <= kMaxOpenExtent, and least, most and
/// likely, which is 0 or between them, are multiples.
absl::Status CheckRange(const DimRange& range);

struct PlanOptions {
  FusionMode fusion = FusionMode::kFused;
  Numerics numerics = Numerics::kFp32Accumulate;
  Hints hints;
  /// Values for symbolic dims of the request, by name.
  std::map<std::string, int64_t> dim_bindings;
  /// Symbolic dims that stay open, by name: the plan is one for all their values. At most
  /// kMaxPlanSymbols.
  std::map<std::string, DimRange> dim_ranges;
  /// Names of intermediate tensors that the caller wants as outputs too.
  std::vector<std::string> keep_outputs;
  /// Outputs that lie in the memory of an input, as caches of keys and values do.
  std::vector<SharedNames> shared_buffers;
  /// Inputs and outputs that do not lie dense and row-major in the caller's memory; with dims left
  /// open the strides are the same for all their values.
  std::vector<NamedStrides> bound_strides;
  /// Ops that the graph uses and nobody knows, in the language of core/custom/custom_ops.h.
  std::string custom_ops;
  /// What the caller knows better than the planner; kOpByOp follows none of it.
  Rules rules;
  /// Also look for plans of less memory and of less to compile than the one that is chosen, for
  /// Plan::frontier. The plan stays the same.
  bool frontier = false;
  /// Kernels keep their symbols and line tables; their code is the same.
  bool debug = false;
  /// Kernels check every place that they read or write, and answer where they would have left a
  /// tensor. Much slower; the schedules are the same.
  bool guard = false;
  /// How much may be spent on trying other tiles than those that the benefit model picks: kernels
  /// are compiled with some, timed on the machine of the service, and the fastest stay
  /// (core/pipeline/kernels/tile_search.h). 0: nothing is tried; at most kMaxOptLevel.
  int opt_level = 0;
  /// Groups and cuts to plan with, whatever the planner would choose; null: it chooses.
  std::shared_ptr<const PlanLock> lock;
  /// Whose plan and kernels these are, and nobody else's; empty: they are shared. The service says
  /// so; it does not travel.
  std::string tenant = {};
};

}  // namespace fusion
