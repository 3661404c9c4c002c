#include "core/pipeline/requests/plan_key.h"

#include <charconv>
#include <map>

#include "core/base/hash.h"
#include "core/base/key_field.h"

namespace fusion {
namespace {

// Fields by label; a number that is missing or none is 0, and PlanKey then gives other bytes.
class KeyFields {
 public:
  explicit KeyFields(std::string_view full_key) {
    while (const std::optional<FramedField> field = NextFramedField(&full_key)) {
      values_.emplace(field->label, field->value);
    }
  }
  std::string Text(std::string_view label) const {
    auto found = values_.find(label);
    return found == values_.end() ? "" : std::string(found->second);
  }
  int Number(std::string_view label) const {
    const std::string text = Text(label);
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }
  bool Flag(std::string_view label) const { return Number(label) != 0; }

 private:
  std::map<std::string_view, std::string_view> values_;
};

}  // namespace

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

absl::StatusOr<PlanKeyParts> ParsePlanKey(std::string_view full_key) {
  const KeyFields fields(full_key);
  PlanKeyParts parts;
  parts.graph = fields.Text("graph");
  parts.device = fields.Text("device");
  parts.fusion = static_cast<FusionMode>(fields.Number("fusion"));
  parts.numerics = static_cast<Numerics>(fields.Number("numerics"));
  parts.high_memory_pressure = fields.Flag("high_memory_pressure");
  parts.high_compute_pressure = fields.Flag("high_compute_pressure");
  parts.low_latency = fields.Flag("low_latency");
  parts.frontier = fields.Flag("frontier");
  parts.debug = fields.Flag("debug");
  parts.guard = fields.Flag("guard");
  parts.opt_level = fields.Number("opt_level");
  parts.rules = fields.Text("rules");
  parts.planner_version = fields.Number("planner");
  parts.backend = fields.Text("backend");
  parts.codegen_version = fields.Number("codegen");
  parts.abi_version = fields.Number("abi");
  parts.toolchain = fields.Text("toolchain");
  parts.lock = fields.Text("lock");
  parts.family = fields.Text("family");
  parts.registered = fields.Text("registered");
  parts.tenant = fields.Text("tenant");
  const bool known = parts.fusion <= FusionMode::kOpByOp && parts.numerics <= Numerics::kFast;
  if (known && PlanKey(parts) == full_key) return parts;
  return InvalidArgument("the key of a plan has ", full_key.size(),
                         " bytes that no server of this version writes");
}

}  // namespace fusion
