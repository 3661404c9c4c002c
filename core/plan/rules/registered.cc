#include "core/plan/rules/registered.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace fusion {
namespace {

constexpr int kExactMark = -5;  // of AppendKey: no other part of a key is so low
constexpr int kForcedMark = -6;

// Everything about a match except its place: equal texts are equal kernels of equal cost.
std::string MeaningOf(const RegisteredMatch& match) {
  std::map<ValueId, size_t> first;
  std::string params;
  for (size_t p = 0; p < match.params.size(); ++p) {
    params += StrCat(" ", first.try_emplace(match.params[p].value, p).first->second,
                     match.params[p].output ? "o" : "i");
  }
  return StrCat(match.kernel->name(), params, " ", StrJoin(match.constants, " "), " ",
                match.scratch_bytes, " ", match.workspace_bytes, " ",
                match.time_us.has_value() ? HexDouble(*match.time_us) : "-");
}

}  // namespace

void RegisteredMatches::Add(RegisteredMatch match, bool forced) {
  const std::vector<LoopId> loops = match.loops;
  if (forced) {
    forced_.resize(std::max(forced_.size(), static_cast<size_t>(loops.back()) + 1), -1);
    for (LoopId l : loops) {
      forced_[static_cast<size_t>(l)] = static_cast<int>(forced_loops_.size());
    }
    forced_loops_.push_back(loops);
    forced_names_.push_back(match.kernel->name());
  } else if (!of_loops_.contains(loops)) {
    sets_.push_back(loops);
  }
  meaning_[loops].push_back(
      meanings_.try_emplace(MeaningOf(match), static_cast<int>(meanings_.size())).first->second);
  of_loops_[loops].push_back(std::move(match));
}

const std::vector<RegisteredMatch>* RegisteredMatches::Of(const std::vector<LoopId>& loops) const {
  if (of_loops_.empty()) return nullptr;
  auto found = of_loops_.find(loops);
  return found == of_loops_.end() ? nullptr : &found->second;
}

Refusal RegisteredMatches::Forbids(const std::vector<LoopId>& loops) const {
  if (forced_.empty()) return {};
  for (LoopId l : loops) {
    const int match = ForcedMatch(l);
    if (match < 0) continue;
    const std::vector<LoopId>& whole = forced_loops_[static_cast<size_t>(match)];
    // Subsets are allowed: the plan with one kernel per node needs them.
    if (std::includes(whole.begin(), whole.end(), loops.begin(), loops.end())) return {};
    return Refuse(RefusalCode::kRegistered, "registered kernel ",
                  Quote(forced_names_[static_cast<size_t>(match)]),
                  " is forced: it computes its nodes and nothing else");
  }
  return {};
}

void RegisteredMatches::AppendKey(const std::vector<LoopId>& loops, std::vector<int>* key) const {
  if (of_loops_.empty()) return;
  auto exact = meaning_.find(loops);
  if (exact != meaning_.end()) {
    key->push_back(kExactMark);
    key->insert(key->end(), exact->second.begin(), exact->second.end());
  }
  for (size_t i = 0; !forced_.empty() && i < loops.size(); ++i) {
    if (!IsForced(loops[i])) continue;
    key->push_back(kForcedMark);
    key->push_back(static_cast<int>(i));
  }
}

Estimate EstimateRegistered(const RegisteredMatch& match, const Program& program,
                            const std::vector<bool>& constant, const Estimate* generated,
                            const DeviceSpec& device) {
  const RegisteredKernel& kernel = *match.kernel;
  const Estimate& like = generated != nullptr ? *generated : match.apart;
  Estimate e;
  e.flops = like.flops;
  std::set<ValueId> seen;
  for (const RegisteredMatch::Param& param : match.params) {
    if (!seen.insert(param.value).second) continue;
    const TensorType& type = program.value(param.value).type;
    const int64_t bytes = NumElements(type.shape.ToDims()) * DTypeBytes(type.dtype);
    (constant[static_cast<size_t>(param.value)] ? e.weight_bytes : e.activation_bytes) += bytes;
  }
  e.launch_us = device.launch_s * 1e6;
  e.tasks = 1;
  e.waves = 1;
  if (kernel.flops_per_us > 0) e.compute_us = e.flops / kernel.flops_per_us;
  if (kernel.bytes_per_us > 0) {
    e.memory_us = static_cast<double>(e.activation_bytes + e.weight_bytes) / kernel.bytes_per_us;
    e.off_chip_us = e.memory_us;
  }
  e.time_us = e.launch_us + std::max(e.compute_us, e.memory_us);
  const bool rated = kernel.flops_per_us > 0 || kernel.bytes_per_us > 0;
  if (rated) return e;
  e.time_us =
      match.time_us.has_value() ? std::clamp(*match.time_us, 0.0, kMaxKernelUs) : like.time_us;
  e.launch_us = std::min(e.launch_us, e.time_us);
  e.compute_us = e.time_us - e.launch_us;
  return e;
}

Schedule RegisteredSchedule(const RegisteredMatch& match, std::vector<Buffer> buffers,
                            std::string label) {
  Schedule schedule;
  schedule.label = std::move(label);
  schedule.params = static_cast<int>(buffers.size());
  schedule.buffers = std::move(buffers);
  CallStmt call{.op = kRegisteredCall};
  call.attrs.Set("form", int64_t{kRegisteredForm});
  call.attrs.Set("kernel", match.kernel->name());
  call.attrs.Set("source", match.kernel->source_sha256.ToHex());
  for (size_t i = 0; i < match.constants.size(); ++i) {
    // Constants have names of the source; the prefix separates them from our attributes.
    call.attrs.Set(StrCat("c_", match.kernel->constants[i].name), match.constants[i]);
  }
  for (BufferId b = 0; b < schedule.params; ++b) {
    const bool written = schedule.buffer(b).kind == ParamKind::kOutput;
    (written ? call.outputs : call.inputs).push_back(b);
  }
  Phase phase;
  phase.segments.emplace_back();
  phase.segments.back().body.push_back(Stmt{call});
  schedule.phases.assign(static_cast<size_t>(match.kernel->phases), phase);
  return schedule;
}

}  // namespace fusion
