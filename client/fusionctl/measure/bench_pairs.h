#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "client/client.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/median_interval.h"

namespace fusion {

/// The fused plan of a model and its plan with one kernel a node, measured in pairs of runs.
struct BenchResult {
  Contender fused;
  Contender op_by_op;
  std::optional<int64_t> reported_samples;
  std::string report_error;  // why not, where it was tried

  /// Time of the fused plan by that of the other, by pair.
  MedianInterval ratio() const;
  /// Of outputs, as a part of the largest element.
  double largest_difference() const;
};

/// As --json has it.
nlohmann::ordered_json RatioJson(const MedianInterval& ratio);

/// Plans and compiles both, then runs them as `arguments` say. Latencies are reported to a service
/// that keeps them (--server, --store), unless --no-report is given.
absl::StatusOr<BenchResult> MeasurePlans(const Arguments& arguments, const ModelFile& file,
                                         const RunInputs& inputs, const Client& client,
                                         Progress* progress);

}  // namespace fusion
