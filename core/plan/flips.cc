#include "core/plan/flips.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/plan/grouping.h"

namespace fusion {
namespace {

// A change by more than this factor is no answer to "what would it take".
constexpr double kMostFactor = 1000;

double Rounded(double value, double digits) { return std::round(value * digits) / digits; }

// An estimate if memory took `factor` times as long; see EstimateKernel.
double TimeWithMemory(const Estimate& e, double factor, double overlap) {
  double exposed = 1 - overlap;
  double spilled = e.stall_us - exposed * std::min(e.compute_us, e.memory_us);
  double memory = factor * e.memory_us;
  return std::max(e.compute_us, memory) + exposed * std::min(e.compute_us, memory) + spilled +
         e.launch_us + e.tiling_loss_us;
}

// The factor on memory times nearest to 1, on one side of it, at which joining gains. The gain is
// linear between the factors at which a kernel changes from waiting for arithmetic to waiting for
// memory.
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
  // Where the gain, linear from `low` to `high`, passes the least that counts.
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
  double factor;  // how far from what is; at least 1
  PlanFlip flip;
};

void AddLaunchFlip(const GroupVerdict& first, const GroupVerdict& second,
                   const GroupVerdict& together, double gain_us, const DeviceSpec& device,
                   std::vector<Sized>* out) {
  int saved = first.phases + second.phases - together.phases;
  if (saved <= 0) return;
  double now_us = device.launch_s * 1e6;
  double wanted_us = now_us + (kMinGainUs - gain_us) / saved;
  out->push_back({wanted_us / std::max(now_us, 1e-3),
                  {"launch-us", wanted_us,
                   StrCat("gains if a launch cost more than ", MicrosecondsText(wanted_us),
                          " (it costs ", MicrosecondsText(now_us), ")")}});
}

void AddMemoryFlip(std::optional<double> factor, const DeviceSpec& device,
                   std::vector<Sized>* out) {
  if (!factor.has_value() || *factor <= 0) return;
  double now = device.levels.back().total_bytes_per_s / 1e9;
  double wanted = now / *factor;
  bool slower = *factor > 1;
  out->push_back(
      {slower ? *factor : 1 / *factor,
       {"memory-gb-per-s", wanted,
        StrCat("gains if memory moved ", slower ? "less" : "more", " than ", Rounded(wanted, 100),
               " GB/s (it moves ", Rounded(now, 100), " GB/s) and caches in proportion")}});
}

}  // namespace

std::string MicrosecondsText(double us) { return StrCat(Rounded(us, 100), " us"); }

std::vector<PlanFlip> GainFlips(const GroupVerdict& first, const GroupVerdict& second,
                                const GroupVerdict& together, const DeviceSpec& device) {
  double apart_us = first.estimate.time_us + second.estimate.time_us;
  double gain_us = apart_us - together.estimate.time_us;
  std::vector<Sized> sized;
  AddLaunchFlip(first, second, together, gain_us, device, &sized);
  MemoryFactor memory(first.estimate, second.estimate, together.estimate, device.overlap);
  AddMemoryFlip(memory.Slower(), device, &sized);
  AddMemoryFlip(memory.Faster(), device, &sized);
  std::stable_sort(sized.begin(), sized.end(),
                   [](const Sized& a, const Sized& b) { return a.factor < b.factor; });
  std::vector<PlanFlip> out;
  for (Sized& s : sized) {
    if (s.factor <= kMostFactor) out.push_back(std::move(s.flip));
  }
  // Always true, and so the last: it says how far off the kernel is, not what to change.
  double wanted_us = apart_us - kMinGainUs;
  if (wanted_us > 0) {
    out.push_back({"together-us", wanted_us,
                   StrCat("gains if the one kernel took less than ", MicrosecondsText(wanted_us),
                          " (it takes ", MicrosecondsText(together.estimate.time_us), ")")});
  }
  return out;
}

std::vector<PlanFlip> FitFlips(const FitProbe& probe) {
  std::vector<PlanFlip> out;
  if (probe.tile > 0) {
    out.push_back(
        {"tile-elements", static_cast<double>(probe.tile),
         StrCat("fits if a block had at most ", probe.tile, " of ", probe.dim,
                " (the shortest that the device's blocks allow is ", probe.tried_tile, ")")});
  }
  std::string bytes = StrJoin(probe.lacking, " and ", [](const FitProbe::Level& level) {
    return StrCat(level.needed_bytes, " B of ", level.name, " (it has ", level.usable_bytes, " B)");
  });
  if (!probe.lacking.empty()) {
    out.push_back({"on-chip-bytes", static_cast<double>(probe.lacking.front().needed_bytes),
                   StrCat("fits if a block had ", bytes)});
  }
  if (!probe.streaming.empty()) {
    out.push_back(
        {"streamed-dims", 1, StrCat("smaller if a sum could be streamed: ", probe.streaming)});
  }
  return out;
}

std::vector<PlanFlip> SlackFlips(double together_us, double apart_us) {
  double limit_us = apart_us - kMinGainUs;
  return {{"together-us", limit_us,
           StrCat("no more if the one kernel took over ", MicrosecondsText(limit_us), " (it takes ",
                  MicrosecondsText(together_us), ")")}};
}

}  // namespace fusion
