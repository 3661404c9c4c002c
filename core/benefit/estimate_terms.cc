#include <algorithm>

#include "core/benefit/estimate.h"

namespace fusion {
namespace {

// a + sign * b; of on-chip bytes the most.
Estimate Combine(const Estimate& a, double sign, const Estimate& b) {
  auto add = [sign](auto x, auto y) { return x + static_cast<decltype(x)>(sign) * y; };
  return {.time_us = add(a.time_us, b.time_us),
          .compute_us = add(a.compute_us, b.compute_us),
          .product_us = add(a.product_us, b.product_us),
          .memory_us = add(a.memory_us, b.memory_us),
          .off_chip_us = add(a.off_chip_us, b.off_chip_us),
          .local_us = add(a.local_us, b.local_us),
          .stall_us = add(a.stall_us, b.stall_us),
          .launch_us = add(a.launch_us, b.launch_us),
          .tiling_loss_us = add(a.tiling_loss_us, b.tiling_loss_us),
          .flops = add(a.flops, b.flops),
          .activation_bytes = add(a.activation_bytes, b.activation_bytes),
          .recompute_bytes = add(a.recompute_bytes, b.recompute_bytes),
          .weight_bytes = add(a.weight_bytes, b.weight_bytes),
          .on_chip_bytes = std::max(a.on_chip_bytes, b.on_chip_bytes),
          .tasks = add(a.tasks, b.tasks),
          .waves = add(a.waves, b.waves)};
}

}  // namespace

Estimate Sum(const Estimate& a, const Estimate& b) { return Combine(a, 1, b); }

Estimate Replaced(const Estimate& whole, const Estimate& before, const Estimate& after) {
  return Combine(Combine(whole, -1, before), 1, after);
}

Estimate EstimateSequence(const std::vector<Estimate>& parts, const DeviceSpec& device) {
  Estimate whole;
  for (const Estimate& part : parts) whole = Sum(whole, part);
  double saved_us = SavedBySequence(parts.size(), device);
  whole.launch_us -= saved_us;
  whole.time_us -= saved_us;
  return whole;
}

double SavedBySequence(size_t parts, const DeviceSpec& device) {
  return static_cast<double>(parts - 1) * (device.launch_s - device.barrier_s) * 1e6;
}

std::string BoundOf(const Estimate& e, const DeviceSpec& device) {
  double near_us = e.memory_us - e.off_chip_us;  // private caches count as the shared level
  const std::pair<double, std::string_view> kTerms[] = {{e.product_us, "products"},
                                                        {e.compute_us - e.product_us, "elements"},
                                                        {near_us, device.SharedLevel().name},
                                                        {e.off_chip_us, device.levels.back().name},
                                                        {e.launch_us, "launch"},
                                                        {e.tiling_loss_us, "idle units"}};
  const auto& most =
      *std::max_element(std::begin(kTerms), std::end(kTerms),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
  return most.first > 0 ? std::string(most.second) : "";
}

}  // namespace fusion
