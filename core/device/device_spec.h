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

/// One memory level of a device. DeviceSpec lists levels from the nearest to the units outwards;
/// the last one is off chip.
struct MemoryLevel {
  std::string name;              // "l1", "l2", "l3", "memory"
  int64_t bytes = 0;             // 0: unbounded
  bool shared = false;           // one for all units; else one per unit
  double headroom = 1;           // fraction of `bytes` that a plan may fill
  double bytes_per_s = 0;        // sustained by one unit, reads and writes mixed
  double total_bytes_per_s = 0;  // by all units; bytes_per_s * threads if private

  /// Bytes that a plan may fill: `bytes` times `headroom`.
  int64_t UsableBytes() const;
};

/// An accumulator tile that the backend keeps in registers (or next to the matrix unit): m rows of
/// n f32 elements.
struct RegisterBlock {
  int m = 1;
  int n = 1;
};

/// Costs of moving elements, in f32 additions per element: the unit of ScalarInfo::cost.
struct ElementCosts {
  double contiguous = 0.6;   // load or store along the vector dim
  double strided = 12;       // load or store of a single lane
  double fold = 12;          // per row reduced along the vector dim, in vector additions
  double accumulator = 0.8;  // moving an element of a product's result to a vector register
};

/// Rates of one unit for an element type.
struct TypeRates {
  double flops_per_s = 0;
  double scalar_ops_per_s = 0;
};

/// The unit that computes elements of a type other than f32. If the type has its own product unit
/// (such as AMX), `blocks` is not empty; otherwise all fields but `rates` are empty or 0, and the
/// values for f32 apply.
struct TypeUnit {
  TypeRates rates;
  std::vector<RegisterBlock> blocks;  // best first
  double full_rate_vectors = 0;       // as DeviceSpec::full_rate_vectors
  int row_grain = 0;                  // as DeviceSpec::row_grain
  int least_sum = 0;                  // the unit is unused if the last summed dim is shorter
};

/// The unit for a type. On CPUs it needs a minimum instruction set level.
struct OtherType {
  DType type = DType::kF32;
  Isa isa = Isa::kX86V2;  // minimum level; CPUs only
  TypeUnit unit;
};

/// The numbers about a device that planning uses. A plain value. ResolveTarget returns the spec for
/// a request.
///
/// A *unit* runs one block at a time: a thread of a CPU, a multiprocessor, an AI core. The role of
/// a tile decides its memory level: staged tiles, slices of product operands on their way to the
/// product unit, accumulators. With explicit memory, tiles that do not fit give no schedule; with
/// caches they are only slow.
struct DeviceSpec {
  std::string name;     // "intel-skylake-server"
  std::string kind;     // "CPU", "GPU", "NPU"
  std::string unit;     // "thread"
  std::string backend;  // name of the code generator; planning does not need this backend
  std::string vendor;   // matches Target::vendor, as family and models do; empty in generic specs
  int family = 0;
  std::vector<int> models;
  std::string arch;  // instruction set of the kernels: IsaName(isa) on CPUs, else the vendor's name
  Isa isa = Isa::kX86V2;  // CPUs only

  int threads = 1;           // number of units that the target may use
  bool fixed_units = false;  // the number of units is fixed by the device; targets cannot raise it
  int vector_bytes = 16;     // width of one vector operation
  double flops_per_s = 0;    // one unit, f32 multiply-add in matrix products, peak
  double product_efficiency = 1;  // fraction of the peak that long register-blocked products reach
  double scalar_ops_per_s =
      0;  // one unit, f32: ScalarInfo::cost units per second, elements counted one by one
  std::map<DType, TypeUnit> other_types;  // types that differ from f32, for the level `isa`
  std::vector<OtherType> types_of_isas;  // candidates for other_types; the last that applies counts
  double overlap = 0;     // fraction of the shorter of memory and arithmetic time that overlaps
  double launch_s = 0;    // starting a kernel and its first phase
  double barrier_s = 0;   // barrier between two phases: all blocks of one end, then the next begins
  double relaunch_s = 0;  // launch_s in the passes of a loop, where units already wait for work
  double call_s = 0;      // the same with one unit, which calls the kernel directly
  double task_s = 0;      // handing one task to a unit
  double least_task_s = 2e-5;         // for shorter tasks, the hand-over dominates
  std::vector<MemoryLevel> levels;    // nearest first
  std::vector<RegisterBlock> blocks;  // best first
  ElementCosts costs;

  // Products. A block with few accumulators waits for its operands: its rate grows with their
  // number.
  double full_rate_vectors = 10;  // vectors of accumulators that keep the product unit busy
  double least_rate = 0.12;       // fraction of the rate that the smallest block reaches
  double turn_s = 0;      // in a sum over several dims: moving to the next run of the innermost one
  int row_grain = 4;      // rows that the product unit processes at once
  int stream_tile = 256;  // elements of the summed dim in a slice that is streamed through a block

  // Memory.
  bool explicit_memory = false;
  std::string staged_level;       // explicit memory only: the level of staged tiles,
  std::string operand_level;      // of slices of product operands,
  std::string accumulator_level;  // and of accumulators
  int operand_slice = 0;          // elements of the summed dim in one slice
  int operand_stages = 0;         // slices in flight
  int alignment = 64;             // of tiles, in bytes
  int alias_bytes = 0;  // rows at multiples of this distance evict each other from the nearest
                        // cache; 0: they do not
  /// The level through which tiles pass from the product unit to element-wise work and back; empty:
  /// they share memory.
  std::string exchange_level;
  double exchange_s = 0;  // handing over one tile through exchange_level

  // What measurements have corrected (Calibrated, core/benefit/terms.h); specs have none
  // of it.
  /// Time of a byte that a private cache may hold, as a part of that in SharedLevel().
  double local_part = 1;
  /// On arithmetic and traffic of kernels, by bound and form (CostFactors::classes).
  std::map<std::pair<std::string, std::string>, double> class_factors;

  /// The level of that name, which must exist.
  const MemoryLevel& level(std::string_view name_of_level) const;
  /// The nearest level that all units share; the last level if none is marked so.
  const MemoryLevel& SharedLevel() const;
  /// The level whose capacity limits the staged tiles of a block: staged_level, or the largest
  /// private level.
  const MemoryLevel& StagedLevel() const;
  /// Bytes that the staged tiles of a block may use.
  int64_t OnChipBytes() const { return StagedLevel().UsableBytes(); }
  /// Restricts a CPU to the instruction set `level` and updates arch and other_types. `level` must
  /// have vectors of the same width (VectorLevel).
  void LimitIsa(Isa level);
  /// Rates of one unit for elements of `type`; those of f32 if the spec has no others.
  TypeRates Rates(DType type) const;
  /// Register blocks of products that run at the rate of `type`, best first.
  const std::vector<RegisterBlock>& BlocksOf(DType type) const;
  /// Rows that the product unit for `type` processes at once.
  int RowGrainOf(DType type) const;
  /// The unit for `type` is unused if the last summed dim has fewer elements; 1: it is always used.
  int LeastSumOf(DType type) const;
  /// Fraction of the product rate of `type` that a block of rows x columns accumulators reaches.
  double BlockRate(DType type, double rows, double columns) const;

  /// A copy with costs for the passes of a loop whose kernels access `bytes` in total: kernels
  /// start faster, and data that fits into the caches is still there from the previous pass.
  DeviceSpec InLoop(int64_t bytes) const;

  /// All fields that can change a plan, as stable text. Part of plan keys.
  std::string KeyText() const;

 private:
  // The product unit for `type` if it has its own blocks; else null.
  const TypeUnit* OwnUnit(DType type) const;
};

/// Parses a spec from the text of its JSON file. Every number is {"value": x, "unit": "...",
/// "source": "..."}. InvalidArgument, naming `file` and the field, for a missing field, a wrong
/// unit, an empty source, or values that do not fit together. Unimplemented for an unknown ISA.
absl::StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view json, std::string_view file);

/// The specs compiled into this program (core/device/specs/*.json), sorted by name. Fails as
/// ParseDeviceSpec.
absl::StatusOr<std::vector<DeviceSpec>> BuiltInSpecs();

/// The spec to plan a request with. Chooses the first that applies:
///   1. the spec named `target.name`, if given ('-' and '_' are the same);
///   2. a spec with the vendor, family and model of `target`, and vectors of the width of its ISA;
///   3. generic-<isa>. `*warning` (may be null) then says that only the ISA matched.
/// Replaces the cache sizes (not with explicit memory) and the number of threads by those of
/// `target` where these are not 0; of a shared cache at most 32 MiB count per thread. The ISA of a
/// CPU is the lower one of spec and target, so that a client that does not know all instructions of
/// its CPU gets code for those it names. `target.measured` replaces further constants
/// (ApplyMeasured, which adds errors of its own); there is no warning then. Unimplemented: unknown
/// name or ISA. InvalidArgument: neither name nor ISA is given, threads are not
/// 0..kMaxTargetThreads or are more than the fixed units of the device, a cache size is negative,
/// or the ISA is too low for the named CPU. Internal: there is no generic spec.
absl::StatusOr<DeviceSpec> ResolveTarget(const std::vector<DeviceSpec>& specs, const Target& target,
                                         std::string* warning);

}  // namespace fusion
