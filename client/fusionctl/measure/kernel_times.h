#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/fusionctl/measure/contender.h"

namespace fusion {

/// Measured times of one kernel of a plan. All its launches do the same work. Pointers are into the
/// contender's plan.
struct KernelTime {
  const PlanKernel* kernel = nullptr;
  const PlanGroup* group = nullptr;  // of its first launch
  int64_t launches = 0;              // per run; in a loop once per pass (CountedRuns)
  std::vector<double> samples_us;    // of single launches; in a loop the mean of its passes

  double median_us() const;
  double total_us() const { return static_cast<double>(launches) * median_us(); }
  int64_t bytes() const {
    const Estimate& e = group->estimate;
    return e.activation_bytes + e.recompute_bytes + e.weight_bytes;
  }
  double gflops() const { return group->estimate.flops / median_us() / 1e3; }
  double gb_per_s() const { return static_cast<double>(bytes()) / median_us() / 1e3; }
};

// Each function needs a contender that was profiled at least once.

/// The kernels of ran() with the times of profiled runs, in the order of their first launches.
std::vector<KernelTime> KernelTimes(const Contender& contender);

/// For --json.
nlohmann::ordered_json KernelTimesJson(const Contender& contender);
/// As a text table: median, estimate, rates and share of each kernel.
std::string KernelTable(const Contender& contender);

}  // namespace fusion
