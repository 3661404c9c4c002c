// Restores the input of planning from the full key of a plan.
#include <algorithm>
#include <charconv>

#include "core/base/key_field.h"
#include "core/base/text/probed_name.h"
#include "core/graph/build/text.h"
#include "core/pipeline/requests/plan_key.h"
#include "core/pipeline/requests/resolve.h"

namespace fusion {
namespace {

// "level=BYTES/..." of DeviceSpec::KeyText; 0 where it is not there.
int64_t BytesOfLevel(std::string_view device, std::string_view level) {
  const std::string mark = StrCat(" ", level, "=");
  const size_t at = device.find(mark);
  if (at == std::string_view::npos) return 0;
  const char* begin = device.data() + at + mark.size();
  int64_t bytes = 0;
  std::from_chars(begin, device.data() + device.size(), bytes);
  return bytes;
}

// A target that may resolve to the device of this KeyText; comparing the texts tells.
Target TargetOf(const std::string& device) {
  const std::vector<std::string_view> words = StrSplit(device, ' ');
  Target target;
  if (words.size() < 4) return target;
  target.name = words[0];
  if (words[1] == "CPU") target.isa = words[3];
  target.threads =
      static_cast<int>(std::min<int64_t>(BytesOfLevel(device, "threads"), kMaxTargetThreads));
  target.l1_bytes = BytesOfLevel(device, "l1");
  target.l2_bytes = BytesOfLevel(device, "l2");
  target.l3_bytes = BytesOfLevel(device, "l3");
  return target;
}

// Why the key does not hold all that planning needs; empty: it may.
std::string WhatIsMissing(const PlanKeyParts& parts) {
  if (!parts.family.empty()) return "its dims are open, and its key names none of its members";
  if (!parts.lock.empty()) return "it was planned with a lock, of which its key has the digest";
  if (ParseProbedName(std::string_view(parts.device).substr(0, parts.device.find(' ')))) {
    return "the constants of its device were measured by a probe and come with requests only";
  }
  if (parts.opt_level > 0) return "its tiles were measured on another machine";
  return "";
}

// The label of the first field in which two keys differ.
std::string_view FirstDifference(std::string_view a, std::string_view b) {
  for (;;) {
    const std::optional<FramedField> one = NextFramedField(&a);
    const std::optional<FramedField> other = NextFramedField(&b);
    if (!one.has_value() || !other.has_value()) {
      return one.has_value() ? one->label : other.has_value() ? other->label : "end";
    }
    if (one->label != other->label || one->value != other->value) return one->label;
  }
}

}  // namespace

absl::StatusOr<WorkPtr> Resolver::WorkOf(std::string_view full_key) const {
  absl::StatusOr<PlanKeyParts> parts = ParsePlanKey(full_key);
  if (!parts.ok()) return FailedPrecondition(Message(parts.status()));
  const std::string missing = WhatIsMissing(*parts);
  if (!missing.empty()) return FailedPrecondition(missing);
  std::string warning;
  absl::StatusOr<DeviceSpec> device = ResolveTarget(specs_, TargetOf(parts->device), &warning);
  if (!device.ok() || device->KeyText() != parts->device) {
    return FailedPrecondition("its device ",
                              QuoteShort(parts->device.substr(0, parts->device.find(' '))),
                              " is not one that this server plans for");
  }
  absl::StatusOr<Graph> graph = ParseGraph(parts->graph);
  if (!graph.ok()) {
    return FailedPrecondition(
        "its key does not hold its whole graph: of constants of more than "
        "1 KiB it has the digest");
  }
  if (!graph->symbols().empty()) return FailedPrecondition("its dims are open");
  // Again: no name and no order but ours comes from a key.
  ASSIGN_OR_RETURN(const CanonicalGraph canonical, Canonicalise(*graph));
  PlanRequest request;
  request.options.fusion = parts->fusion;
  request.options.numerics = parts->numerics;
  request.options.hints.memory_pressure = parts->high_memory_pressure ? 1 : 0;
  request.options.hints.compute_pressure = parts->high_compute_pressure ? 1 : 0;
  request.options.hints.low_latency = parts->low_latency;
  request.options.frontier = parts->frontier;
  request.options.debug = parts->debug;
  request.options.guard = parts->guard;
  request.options.tenant = parts->tenant;
  ASSIGN_OR_RETURN(WorkPtr work, MakeWork(canonical, *std::move(device), nullptr, "", request));
  if (work->full_key == full_key) return work;
  return FailedPrecondition("this server would give it another key: it differs in ",
                            Quote(FirstDifference(work->full_key, full_key)));
}

}  // namespace fusion
