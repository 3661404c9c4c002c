#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/measure/contender.h"
#include "core/tensor/compare.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

// What fusionctl run says about outputs and times, however the model ran. `names` and `tensors`
// belong together one by one.

/// A table: type, range, first elements of each.
std::string OutputsText(const std::vector<std::string>& names,
                        const std::vector<HostTensor>& tensors);
nlohmann::ordered_json OutputsJson(const std::vector<std::string>& names,
                                   const std::vector<HostTensor>& tensors);

/// "max_abs", "max_rel" and "outside"; what is infinite, which JSON has no number for, is "inf".
nlohmann::ordered_json DifferenceJson(const Difference& difference);

/// What it ran on: "random inputs", "the inputs in DIR".
std::string SourceText(const RunInputs& inputs);

/// "1.2 ms", of several samples "1.2 ms, median of 9, 95 % interval ...".
std::string LatencyText(const std::vector<double>& samples_us);

/// Writes them to the directory of --out.
absl::Status SaveOutputs(const Arguments& arguments, const std::vector<std::string>& names,
                         const std::vector<HostTensor>& tensors);

}  // namespace fusion
