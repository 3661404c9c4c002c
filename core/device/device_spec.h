#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/device/target.h"
#include "core/tensor/dtype.h"

namespace fusion {

/// One memory level of a device, nearest first. The last level is off chip.
struct MemoryLevel {
  std::string name;        // "l1", "l2", "l3", "memory"
  int64_t bytes = 0;       // 0: unbounded
  bool shared = false;     // by all units; else each unit has its own
  double headroom = 1;     // part of `bytes` that a plan may fill
  double bytes_per_s = 0;  // sustained by one unit, reads and writes mixed
  double total_bytes_per_s =
      0;  // by all units together; equals bytes_per_s * threads where private

  /// What a plan may fill: `bytes` times `headroom`.
  int64_t UsableBytes() const;
};

/// A tile of the accumulator that the backend keeps next to the product unit, in elements of f32: m
/// rows of n.
struct RegisterBlock {
  int m = 1;
  int n = 1;
};

/// Costs of moving elements, in additions per element of f32, next to ScalarInfo::cost of the
/// functions.
struct ElementCosts {
  double contiguous = 0.6;   // loading or storing along the vector dim
  double strided = 12;       // a lane that moves alone
  double fold = 12;          // per row folded along the vector dim, in vector additions
  double accumulator = 0.8;  // an element of a product's result on its way to the vectors
};

/// Rates of one unit for an element type.
struct TypeRates {
  double flops_per_s = 0;
  double scalar_ops_per_s = 0;
};

/// What a device computes elements with that are not f32. All but the rates: of a product unit with
/// blocks of its own, else none and 0, and f32's hold.
struct TypeUnit {
  TypeRates rates;
  std::vector<RegisterBlock> blocks;  // best first
  double full_rate_vectors = 0;       // as DeviceSpec's
  int row_grain = 0;                  // likewise
  int least_sum = 0;                  // a shorter last summed dim leaves the unit unused
};

/// A unit for a type, from a level of its device's instruction set on.
struct OtherType {
  DType type = DType::kF32;
  Isa isa = Isa::kX86V2;  // of CPUs
  TypeUnit unit;
};

/// What planning needs to know about a device, as data: numbers with units, and where each came
/// from. A plain value; ResolveTarget makes the one that a request is planned with.
///
/// A *unit* runs one block at a time: a thread of a CPU, a multiprocessor, an AI core. Tiles of a
/// schedule lie in levels by their role: staged tiles, slices of product operands on their way to
/// the product unit, accumulators. Where memory is explicit what does not fit has no schedule;
/// behind caches it is only slow.
struct DeviceSpec {
  std::string name;     // "intel-skylake-server"
  std::string kind;     // "CPU", "GPU", "NPU"
  std::string unit;     // "thread"
  std::string backend;  // code generator; a plan can be made without one
  std::string vendor;   // to match a Target; empty in generic specs
  int family = 0;
  std::vector<int> models;
  std::string arch;  // instruction set of the kernels: IsaName(isa) on CPUs, else the vendor's name
  Isa isa = Isa::kX86V2;  // of CPUs; means nothing elsewhere

  int threads = 1;                // units of the target
  bool fixed_units = false;       // the device has so many units, whatever runs on it
  int vector_bytes = 16;          // width of one vector operation
  double flops_per_s = 0;         // one unit, f32 multiply-add in matrix products, peak
  double product_efficiency = 1;  // part of the peak that a long register-blocked product reaches
  double scalar_ops_per_s =
      0;  // one unit, f32: ScalarInfo::cost units per second, elements counted one by one
  std::map<DType, TypeUnit> other_types;  // where they are not as f32, by the instructions of `isa`
  std::vector<OtherType> types_of_isas;   // what it is chosen from: later ones instead of earlier
  double overlap = 0;     // part of memory time that hides behind arithmetic, or the other way
  double launch_s = 0;    // starting a kernel, with its first phase
  double barrier_s = 0;   // going on to its next phase: all blocks of one end, then the next begin
  double relaunch_s = 0;  // as launch_s in a loop, whose units still wait for work,
  double call_s = 0;      // and if there is only one, which calls the kernel itself
  double task_s = 0;      // handing one task to a unit
  double least_task_s = 2e-5;         // a shorter task is mostly hand-over
  std::vector<MemoryLevel> levels;    // nearest first
  std::vector<RegisterBlock> blocks;  // best first
  ElementCosts costs;

  // Products. A block of few accumulators waits for its operands: its rate grows with them.
  double full_rate_vectors = 10;  // vectors of accumulators that keep the product unit busy
  double least_rate = 0.12;       // part of the rate that the smallest block reaches
  double turn_s = 0;  // of a sum over several dims: going on with the next stretch of the last one
  int row_grain = 4;  // rows that the product unit takes at once
  int stream_tile = 256;  // length of a slice of a sum that is streamed through a block

  // Memory.
  bool explicit_memory = false;
  std::string staged_level;       // explicit memory: where staged tiles lie,
  std::string operand_level;      // slices of product operands,
  std::string accumulator_level;  // and accumulators
  int operand_slice = 0;          // elements of the summed dim in one slice
  int operand_stages = 0;         // slices in flight
  int alignment = 64;             // of tiles, in bytes
  int alias_bytes = 0;  // rows so far apart evict each other from the nearest cache; 0: they do not
  /// The level through which results of products reach element-wise work, and its results products;
  /// empty: they share memory.
  std::string exchange_level;
  double exchange_s = 0;  // handing over one tile that way

  const MemoryLevel& level(std::string_view name_of_level) const;
  /// The nearest level that all units share; the last level if none is marked so.
  const MemoryLevel& SharedLevel() const;
  /// The level whose capacity limits the staged tiles of a block: staged_level, or the largest
  /// private level.
  const MemoryLevel& StagedLevel() const;
  /// Bytes of staged tiles a block may use.
  int64_t OnChipBytes() const { return StagedLevel().UsableBytes(); }
  /// Takes the instructions above `level`, which has vectors as wide, away from a CPU.
  void LimitIsa(Isa level);
  /// Rates of one unit for elements of a type.
  TypeRates Rates(DType type) const;
  /// The blocks that products with the rate of a type are computed in, best first.
  const std::vector<RegisterBlock>& BlocksOf(DType type) const;
  /// Rows that the product unit of a type takes at once.
  int RowGrainOf(DType type) const;
  /// Elements of the last summed dim below which that unit is left unused; 1: it never is.
  int LeastSumOf(DType type) const;
  /// Part of the product rate of a type that a block of rows x columns accumulators reaches.
  double BlockRate(DType type, double rows, double columns) const;

  /// The device as the passes of a loop see it, whose kernels work on `bytes` together: kernels
  /// start sooner, and what fits the caches was left there by the pass before.
  DeviceSpec InLoop(int64_t bytes) const;

  /// Everything that can change a plan, as stable text; part of plan keys.
  std::string KeyText() const;

 private:
  // The product unit of a type that has blocks of its own; null: there is none.
  const TypeUnit* OwnUnit(DType type) const;
};

/// Reads a spec from the text of its JSON file. Every number is {"value": x, "unit": "...",
/// "source": "..."}; a missing field, an unknown unit or an empty source is InvalidArgument naming
/// `file` and the field.
absl::StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view json, std::string_view file);

/// The specs compiled into this program (core/device/specs/*.json), sorted by name.
absl::StatusOr<std::vector<DeviceSpec>> BuiltInSpecs();

/// The spec to plan with: `target.name` if given ('-' and '_' are the same), else vendor, family
/// and model with vectors as wide as the target's ISA has them, else generic-<isa>; with the
/// target's caches and threads put in, of a shared cache at most 32 MiB for each thread. The ISA is
/// the lower one of a CPU's spec and the target, so that a client which does not know all of its
/// CPU's instructions gets code for those it names. 0 threads: as many as the spec says.
/// Unimplemented for an unknown name or ISA; InvalidArgument for more threads than the device has
/// units; `warning` says when only the ISA matched.
absl::StatusOr<DeviceSpec> ResolveTarget(const std::vector<DeviceSpec>& specs, const Target& target,
                                         std::string* warning);

}  // namespace fusion
