#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/bundle/options.h"

namespace fusion {

/// Everything that can change a plan. Batch size, dim bindings and kept outputs are part of
/// `graph`. Names, weight values and the request's mode are not part of the key.
struct PlanKeyParts {
  std::string graph;   // CanonicalGraph::key_text
  std::string device;  // DeviceSpec::KeyText: spec, ISA, caches, threads
  FusionMode fusion = FusionMode::kFused;
  Numerics numerics = Numerics::kFp32Accumulate;
  bool high_memory_pressure = false;  // IsHighPressure of the hint
  bool high_compute_pressure = false;
  bool low_latency = false;
  bool frontier = false;  // PlanOptions::frontier
  bool debug = false;
  bool guard = false;
  int opt_level = 0;
  std::string rules;  // KeyText of the rules that apply; empty with kOpByOp
  int planner_version = 0;
  std::string backend;
  int codegen_version = 0;
  int abi_version = 0;
  std::string toolchain;   // Toolchain::KeyText: kernels are named in the plan
  std::string lock;        // DigestOf(PlanLock) in hex; empty: none
  std::string family;      // KeyText of the family; empty: static shapes
  std::string registered;  // KeyText of the registered kernels that may be used; empty: none
  std::string tenant;      // PlanOptions::tenant; empty: shared
};

/// The full key; its SHA-256 names the plan. Differs whenever a part differs.
std::string PlanKey(const PlanKeyParts& parts);

/// Inverse of PlanKey. InvalidArgument for bytes that PlanKey does not produce.
absl::StatusOr<PlanKeyParts> ParsePlanKey(std::string_view full_key);

}  // namespace fusion
