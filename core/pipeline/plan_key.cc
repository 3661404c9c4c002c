#include "core/pipeline/plan_key.h"

#include "core/base/hash.h"

namespace fusion {

std::string PlanKey(const PlanKeyParts& parts) {
  FieldHasher h;
  h.Add("graph", parts.graph)
      .Add("device", parts.device)
      .Add("fusion", static_cast<int64_t>(parts.fusion))
      .Add("numerics", static_cast<int64_t>(parts.numerics))
      .Add("high_memory_pressure", parts.high_memory_pressure)
      .Add("high_compute_pressure", parts.high_compute_pressure)
      .Add("rules", parts.rules)
      .Add("planner", parts.planner_version)
      .Add("backend", parts.backend)
      .Add("codegen", parts.codegen_version)
      .Add("abi", parts.abi_version)
      .Add("toolchain", parts.toolchain);
  if (parts.low_latency) h.Add("low_latency", parts.low_latency);
  if (parts.frontier) h.Add("frontier", parts.frontier);
  if (parts.debug) h.Add("debug", parts.debug);
  if (parts.guard) h.Add("guard", parts.guard);
  if (parts.opt_level > 0) h.Add("opt_level", parts.opt_level);
  if (!parts.lock.empty()) h.Add("lock", parts.lock);
  if (!parts.family.empty()) h.Add("family", parts.family);
  if (!parts.registered.empty()) h.Add("registered", parts.registered);
  if (!parts.tenant.empty()) h.Add("tenant", parts.tenant);
  return h.bytes();
}

}  // namespace fusion
