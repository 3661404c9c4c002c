#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "client/client.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/statistics/median_interval.h"

namespace fusion {

/// The fused plan of a model and its plan with one kernel per node, measured in pairs of runs.
struct BenchResult {
  Contender fused;
  Contender op_by_op;
  std::optional<int64_t> reported_samples;  // accepted by the service; nullopt: none
  std::string report_error;                 // why a report failed or was omitted; empty: neither

  /// Fused time divided by op-by-op time of each pair: median and interval (BootstrapMedian).
  MedianInterval ratio() const;
  /// Largest difference between the outputs of the two, relative to the largest element.
  double largest_difference() const;
};

/// For --json.
nlohmann::ordered_json RatioJson(const MedianInterval& ratio);

/// Plans and compiles both, then runs them in pairs: --warmup pairs that do not count, then --pairs
/// pairs, or as many as fit into --seconds (5 s by default). Reports the latencies of both
/// plans to a service that stores them (--server or --store), unless --no-report is given; a failed
/// report is no error. Profiles both plans if it reports, or with --kernels.
absl::StatusOr<BenchResult> MeasurePlans(const Arguments& arguments, const ModelFile& file,
                                         const RunInputs& inputs, const Client& client,
                                         Progress* progress);

}  // namespace fusion
