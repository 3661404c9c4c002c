#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/device/target.h"

namespace fusion {

/// One memory level of a device, nearest first. The last level is off chip.
struct MemoryLevel {
  std::string name;        // "l1", "l2", "l3", "memory"
  int64_t bytes = 0;       // 0: unbounded
  bool shared = false;     // by all threads; else per thread
  double headroom = 1;     // part of `bytes` that a plan may fill
  double bytes_per_s = 0;  // sustained by one thread, reads and writes mixed
  double total_bytes_per_s =
      0;  // by all threads together; equals bytes_per_s * threads where private
};

/// A tile of the accumulator that the backend keeps in registers, in elements of f32: m rows of n.
struct RegisterBlock {
  int m = 1;
  int n = 1;
};

/// What planning needs to know about a device, as data: numbers with units, and where each came
/// from. A plain value; ResolveTarget makes the one that a request is planned with.
struct DeviceSpec {
  std::string name;     // "intel-skylake-server"
  std::string backend;  // code generator
  std::string vendor;   // to match a Target; empty in generic specs
  int family = 0;
  std::vector<int> models;
  Isa isa = Isa::kX86V2;

  int threads = 1;                // of the target
  int vector_bytes = 16;          // width of one vector register
  double flops_per_s = 0;         // one thread, f32 multiply-add in matrix products, peak
  double product_efficiency = 1;  // part of the peak that a long register-blocked product reaches
  double scalar_ops_per_s =
      0;               // one thread: ScalarInfo::cost units per second, elements counted one by one
  double overlap = 0;  // part of memory time that hides behind arithmetic, or the other way round
  double launch_s = 0;                // starting one phase of a kernel on the thread pool
  double task_s = 0;                  // handing one task to a thread
  std::vector<MemoryLevel> levels;    // nearest first
  std::vector<RegisterBlock> blocks;  // best first

  const MemoryLevel& level(std::string_view name_of_level) const;
  /// The nearest level that all threads share; the last level if none is marked so.
  const MemoryLevel& SharedLevel() const;
  /// Bytes of scratch a block may use: the largest private level times its headroom.
  int64_t OnChipBytes() const;

  /// Everything that can change a plan, as stable text; part of plan keys.
  std::string KeyText() const;
};

/// Reads a spec from the text of its JSON file. Every number is {"value": x, "unit": "...",
/// "source": "..."}; a missing field, an unknown unit or an empty source is InvalidArgument naming
/// `file` and the field.
absl::StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view json, std::string_view file);

/// The specs compiled into this program (core/device/specs/*.json), sorted by name.
absl::StatusOr<std::vector<DeviceSpec>> BuiltInSpecs();

/// The spec to plan with: `target.name` if given, else vendor, family and model, else
/// generic-<isa>; with the target's ISA, caches and threads put in. Unimplemented for an unknown
/// name or ISA; `warning` says when only the ISA matched.
absl::StatusOr<DeviceSpec> ResolveTarget(const std::vector<DeviceSpec>& specs, const Target& target,
                                         std::string* warning);

}  // namespace fusion
