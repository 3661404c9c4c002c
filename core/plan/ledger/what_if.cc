#include "core/plan/ledger/what_if.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/bundle/what_if_words.h"
#include "core/plan/cost/gain.h"
#include "core/plan/sets/grouping.h"
#include "core/plan/sets/loop_sets.h"

namespace fusion {
namespace {

using Loops = std::vector<LoopId>;

// Limit on parts of a refused side that are tried on their own.
constexpr size_t kMostTriedParts = 8;
// What-ifs with a larger factor are dropped as unrealistic.
constexpr double kMostFactor = 1000;

// An estimate if memory took `factor` times as long; see EstimateKernel.
double TimeWithMemory(const Estimate& e, double factor, double overlap) {
  double exposed = 1 - overlap;
  double spilled = e.stall_us - exposed * std::min(e.compute_us, e.memory_us);
  double memory = factor * e.memory_us;
  return std::max(e.compute_us, memory) + exposed * std::min(e.compute_us, memory) + spilled +
         e.launch_us + e.tiling_loss_us;
}

// The factor on memory times that is nearest to 1, on one side of it, and makes joining gain. The
// gain is piecewise linear: its slope changes at factors where a kernel changes between
// compute-bound and memory-bound.
class MemoryFactor {
 public:
  MemoryFactor(const Estimate& first, const Estimate& second, const Estimate& together,
               double overlap)
      : first_(first), second_(second), together_(together), overlap_(overlap) {
    for (const Estimate* e : {&first, &second, &together}) {
      if (e->memory_us > 0) bends_.push_back(e->compute_us / e->memory_us);
    }
    std::sort(bends_.begin(), bends_.end());
  }

  std::optional<double> Slower() const {
    double from = 1;
    for (double bend : bends_) {
      if (bend <= from) continue;
      if (Gain(bend) > kMinGainUs) return Between(from, bend);
      from = bend;
    }
    double slope = Gain(from + 1) - Gain(from);
    if (slope <= 0) return std::nullopt;
    return from + (kMinGainUs - Gain(from)) / slope;
  }

  std::optional<double> Faster() const {
    double from = 1;
    for (auto bend = bends_.rbegin(); bend != bends_.rend(); ++bend) {
      if (*bend >= from || *bend <= 0) continue;
      if (Gain(*bend) > kMinGainUs) return Between(from, *bend);
      from = *bend;
    }
    return Gain(0) > kMinGainUs ? std::optional(Between(from, 0)) : std::nullopt;
  }

 private:
  double Gain(double factor) const {
    return TimeWithMemory(first_, factor, overlap_) + TimeWithMemory(second_, factor, overlap_) -
           TimeWithMemory(together_, factor, overlap_);
  }
  // Where the gain, linear from `low` to `high`, crosses the least gain that counts.
  double Between(double low, double high) const {
    double at_low = Gain(low);
    return low + (high - low) * (kMinGainUs - at_low) / (Gain(high) - at_low);
  }

  const Estimate& first_;
  const Estimate& second_;
  const Estimate& together_;
  const double overlap_;
  std::vector<double> bends_;
};

struct Sized {
  double factor;  // relative to the present value, in either direction; at least 1
  WhatIf what_if;
};

void AddLaunchWhatIf(const GroupVerdict& first, const GroupVerdict& second,
                     const GroupVerdict& together, double gain_us, const DeviceSpec& device,
                     std::vector<Sized>* out) {
  int saved = first.phases + second.phases - together.phases;
  if (saved <= 0) return;
  double now_us = device.launch_s * 1e6;
  double wanted_us = now_us + (kMinGainUs - gain_us) / saved;
  out->push_back({wanted_us / std::max(now_us, 1e-3),
                  {kWhatIfLaunchUs, wanted_us,
                   StrCat("gains if a launch cost more than ", MicrosecondsText(wanted_us),
                          " (it costs ", MicrosecondsText(now_us), ")")}});
}

void AddMemoryWhatIf(std::optional<double> factor, const DeviceSpec& device,
                     std::vector<Sized>* out) {
  if (!factor.has_value() || *factor <= 0) return;
  double now = device.levels.back().total_bytes_per_s / 1e9;
  double wanted = now / *factor;
  bool slower = *factor > 1;
  out->push_back(
      {slower ? *factor : 1 / *factor,
       {kWhatIfMemoryGbPerS, wanted,
        StrCat("gains if memory moved ", slower ? "less" : "more", " than ", Rounded(wanted, 100),
               " GB/s (it moves ", Rounded(now, 100), " GB/s) and caches in proportion")}});
}

void AddPartWhatIf(size_t fit, size_t left_out, std::string_view side, std::string_view border,
                   std::string_view culprit, PlanDecision* entry) {
  entry->what_ifs.push_back({kWhatIfLoopOps, static_cast<double>(fit),
                             StrCat("possible ", side, " ", border, ": without ", culprit,
                                    left_out > 1 ? StrCat(" and ", left_out - 1, " more") : "")});
}

// The time that the two kernels take apart; empty if it is unknown.
std::string ApartText(const PlanDecision& entry) {
  if (!entry.first.has_value() || !entry.second.has_value()) return "";
  return StrCat("; apart they take ",
                MicrosecondsText(entry.first->time_us + entry.second->time_us));
}

}  // namespace

std::vector<WhatIf> GainWhatIfs(const GroupVerdict& first, const GroupVerdict& second,
                                const GroupVerdict& together, const DeviceSpec& device) {
  double apart_us = first.estimate.time_us + second.estimate.time_us;
  double gain_us = apart_us - together.estimate.time_us;
  std::vector<Sized> sized;
  AddLaunchWhatIf(first, second, together, gain_us, device, &sized);
  MemoryFactor memory(first.estimate, second.estimate, together.estimate, device.overlap);
  AddMemoryWhatIf(memory.Slower(), device, &sized);
  AddMemoryWhatIf(memory.Faster(), device, &sized);
  std::stable_sort(sized.begin(), sized.end(),
                   [](const Sized& a, const Sized& b) { return a.factor < b.factor; });
  std::vector<WhatIf> out;
  for (Sized& s : sized) {
    if (s.factor <= kMostFactor) out.push_back(std::move(s.what_if));
  }
  // Last, because it always applies: it says how far off the kernel is, not what to change.
  double wanted_us = apart_us - kMinGainUs;
  if (wanted_us > 0) {
    out.push_back({kWhatIfTogetherUs, wanted_us,
                   StrCat("gains if the one kernel took less than ", MicrosecondsText(wanted_us),
                          " (it takes ", MicrosecondsText(together.estimate.time_us), ")")});
  }
  return out;
}

std::vector<WhatIf> WeighedWhatIfs(const GroupVerdict& first, const GroupVerdict& second,
                                   const GroupVerdict& together) {
  double wanted_us = first.weighed_us() + second.weighed_us() - kMinGainUs;
  double now_us = together.estimate.time_us;
  if (wanted_us <= 0 || now_us <= 0) return {};
  return {{kWhatIfRuleFactor, wanted_us / now_us,
           StrCat("gains if rules counted the one kernel's time as less than ",
                  Rounded(wanted_us / now_us, 1000), " of it (they count it as ", together.factor,
                  ")")},
          {kWhatIfTogetherUs, wanted_us / together.factor,
           StrCat("gains if the one kernel took less than ",
                  MicrosecondsText(wanted_us / together.factor), " (it takes ",
                  MicrosecondsText(now_us), ")")}};
}

std::vector<WhatIf> FitWhatIfs(const FitProbe& probe) {
  std::vector<WhatIf> out;
  if (probe.tile > 0) {
    out.push_back(
        {kWhatIfTileElements, static_cast<double>(probe.tile),
         StrCat("fits if a block had at most ", probe.tile, " of ", probe.dim,
                " (the shortest that the device's blocks allow is ", probe.tried_tile, ")")});
  }
  std::string bytes = StrJoin(probe.lacking, " and ", [](const FitProbe::Level& level) {
    return StrCat(level.needed_bytes, " B of ", level.name, " (it has ", level.usable_bytes, " B)");
  });
  if (!probe.lacking.empty()) {
    out.push_back({kWhatIfOnChipBytes, static_cast<double>(probe.lacking.front().needed_bytes),
                   StrCat("fits if a block had ", bytes)});
  }
  if (!probe.streaming.empty()) {
    out.push_back(
        {kWhatIfStreamedDims, 1, StrCat("smaller if a sum could be streamed: ", probe.streaming)});
  }
  return out;
}

std::vector<WhatIf> SlackWhatIfs(double together_us, double apart_us) {
  double limit_us = apart_us - kMinGainUs;
  return {{kWhatIfTogetherUs, limit_us,
           StrCat("no more if the one kernel took over ", MicrosecondsText(limit_us), " (it takes ",
                  MicrosecondsText(together_us), ")")}};
}

absl::Status WhatIfFinder::SetKnown(const Loops& first, const Loops& second, const Refusal& refusal,
                                    PlanDecision* entry) {
  auto add = [entry](const char* what, double value, std::string words) {
    entry->what_ifs.push_back({what, value, std::move(words)});
  };
  switch (refusal.code) {
    case RefusalCode::kNone:
    case RefusalCode::kNoGain:
    case RefusalCode::kBias: {
      ASSIGN_OR_RETURN(const GroupVerdict* a, evaluator_.Evaluate(first));
      ASSIGN_OR_RETURN(const GroupVerdict* b, evaluator_.Evaluate(second));
      ASSIGN_OR_RETURN(const GroupVerdict* both, evaluator_.Evaluate(Union(first, second)));
      if (refusal.empty()) {
        double apart_us = (a->weighed_us() + b->weighed_us()) / both->factor;
        entry->what_ifs = SlackWhatIfs(both->estimate.time_us, apart_us);
      } else if (a->factor == 1 && b->factor == 1 && both->factor == 1) {
        entry->what_ifs = GainWhatIfs(*a, *b, *both, evaluator_.device());
      } else {
        entry->what_ifs = WeighedWhatIfs(*a, *b, *both);
      }
      break;
    }
    case RefusalCode::kRegistered:
      add(kWhatIfRules, 0, "weighed if the registered kernel were not forced");
      break;
    case RefusalCode::kRule:
      return AddWithoutRule(first, second, entry);
    case RefusalCode::kOnChip: {
      std::optional<FitProbe> probe = evaluator_.Probe(Union(first, second));
      if (probe.has_value()) entry->what_ifs = FitWhatIfs(*probe);
      break;
    }
    case RefusalCode::kCyclic:
      add(kWhatIfGroupsBetween, 0, "possible if nothing lay between, or if that joined as well");
      break;
    case RefusalCode::kLarge: {
      size_t over = first.size() + second.size() - kMostOps;
      add(kWhatIfLoopOps, static_cast<double>(kMostOps),
          StrCat("possible with ", over, over == 1 ? " loop op fewer" : " loop ops fewer"));
      break;
    }
    case RefusalCode::kWide:
      add(kWhatIfInputs, static_cast<double>(kMostOperands),
          StrCat("possible with at most ", kMostOperands, " inputs, ", kMostPieces,
                 " of them one behind the other"));
      break;
    case RefusalCode::kPrepare: {
      const double run_us = entry->first.has_value() ? entry->first->time_us : 0;
      add(kWhatIfRunUs, run_us,
          StrCat("possible if the weights were inputs, which would cost the first's ",
                 MicrosecondsText(run_us), " at every run"));
      break;
    }
    case RefusalCode::kAlone:
      add(kWhatIfFailedKernels, 0,
          StrCat("possible once a kernel that holds the node passes its check", ApartText(*entry)));
      break;
    case RefusalCode::kPressure:
      add(kWhatIfComputePressure, 0.8, "kept at a compute pressure of 0.8 or less");
      break;
    case RefusalCode::kOpByOp:
      add(kWhatIfFusionMode, 1,
          StrCat("weighed if the request asks for fused kernels", ApartText(*entry)));
      break;
    case RefusalCode::kLocked:
      add(kWhatIfLockGroups, 1, "one kernel if the lock had both in one group");
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status WhatIfFinder::AddWithoutRule(const Loops& first, const Loops& second,
                                          PlanDecision* entry) {
  ASSIGN_OR_RETURN(GroupVerdict free, evaluator_.EvaluateWithout(Union(first, second), kNoValue));
  if (!free.refusal.empty()) {
    entry->what_ifs.push_back(
        {kWhatIfRules, 0, StrCat("not even without the rule: ", free.refusal.ToString())});
    return absl::OkStatus();
  }
  entry->together = free.estimate;
  double apart_us = entry->first->time_us;
  if (entry->second.has_value()) apart_us += entry->second->time_us;
  entry->benefit_us = apart_us - free.estimate.time_us;
  entry->what_ifs.push_back(
      {kWhatIfRules, 0,
       StrCat("possible without the rule: ", TimesText(free.estimate.time_us, apart_us))});
  return absl::OkStatus();
}

absl::Status WhatIfFinder::AddTried(const Loops& first, const Loops& second, const Refusal& refusal,
                                    PlanDecision* entry) {
  bool no_gain = refusal.code == RefusalCode::kNoGain;
  bool tried = IsOfSchedules(refusal.code) || no_gain;
  if (!tried) return absl::OkStatus();
  RETURN_IF_ERROR(AddOutsideWhatIfs(first, second, entry));
  if (!no_gain) RETURN_IF_ERROR(AddPartWhatIfs(first, second, entry));
  // Without a what-if, every part was tried: the obstacle is between the two sides themselves.
  const bool none = entry->what_ifs.empty();
  if (none || refusal.code == RefusalCode::kReshape) {
    entry->reason += StrCat(none ? "; no part of the two fits one kernel either, and " : "; ",
                            BytesBetween(first, second), " B pass through memory between them");
  }
  return absl::OkStatus();
}

// The values that `second` reads of `first`, ascending.
std::set<ValueId> WhatIfFinder::Passed(const Loops& first, const Loops& second) const {
  std::set<ValueId> out;
  for (LoopId l : second) {
    for (ValueId v : program_.op(l).inputs) {
      while (program_.value(v).producer != kNoLoop &&
             program_.op(program_.value(v).producer).IsAlias()) {
        v = program_.op(program_.value(v).producer).inputs[0];
      }
      LoopId from = program_.value(v).producer;
      if (from != kNoLoop && std::binary_search(first.begin(), first.end(), from)) out.insert(v);
    }
  }
  return out;
}

int64_t WhatIfFinder::BytesBetween(const Loops& first, const Loops& second) const {
  int64_t bytes = 0;
  for (ValueId v : Passed(first, second)) {
    const TensorType& type = program_.value(v).type;
    int64_t elements = 1;
    for (int64_t d : type.shape.ToDims()) elements *= d;
    bytes += elements * DTypeBytes(type.dtype);
  }
  return bytes;
}

// A value that is needed outside must be written in any case; without that the verdict may be
// reversed.
absl::Status WhatIfFinder::AddOutsideWhatIfs(const Loops& first, const Loops& second,
                                             PlanDecision* entry) {
  Loops both = Union(first, second);
  for (ValueId v : Passed(first, second)) {
    if (!evaluator_.NeededOutside(v, both)) continue;
    ASSIGN_OR_RETURN(GroupVerdict without, evaluator_.EvaluateWithout(both, v));
    if (!without.refusal.empty()) continue;
    double gain_us = entry->first->time_us + entry->second->time_us - without.estimate.time_us;
    if (gain_us <= kMinGainUs) continue;
    entry->what_ifs.insert(
        entry->what_ifs.begin(),
        {kWhatIfOutsideReaders, 0,
         StrCat("gains up to ", MicrosecondsText(gain_us), " if the result of ",
                program_.op(program_.value(v).producer).label,
                evaluator_.IsReturned(v) ? " were not returned" : " were read by nobody else")});
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

// The largest part of the second side that the first can join; else the largest part of the first
// that can join the second.
absl::Status WhatIfFinder::AddPartWhatIfs(const Loops& first, const Loops& second,
                                          PlanDecision* entry) {
  size_t most = std::min(second.size() - 1, kMostTriedParts);
  for (size_t kept = 1; kept <= most; ++kept) {
    Loops part(second.begin(), second.begin() + static_cast<std::ptrdiff_t>(kept));
    ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_.Evaluate(Union(first, part)));
    bool whole = verdict->refusal.empty();
    if (whole && kept < most) continue;
    size_t fit = whole ? kept : kept - 1;
    if (fit > 0) {
      AddPartWhatIf(fit, second.size() - fit, "up to", program_.op(second[fit - 1]).label,
                    program_.op(second[fit]).label, entry);
      return absl::OkStatus();
    }
    break;
  }
  most = std::min(first.size() - 1, kMostTriedParts);
  for (size_t kept = most; kept >= 1; --kept) {
    Loops part(first.end() - static_cast<std::ptrdiff_t>(kept), first.end());
    ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_.Evaluate(Union(part, second)));
    if (!verdict->refusal.empty()) continue;
    AddPartWhatIf(kept, first.size() - kept, "from", program_.op(part.front()).label,
                  program_.op(first[first.size() - kept - 1]).label, entry);
    break;
  }
  return absl::OkStatus();
}

}  // namespace fusion
