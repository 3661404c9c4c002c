#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/measure/contender.h"
#include "core/tensor/compare.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

// Outputs and times of fusionctl run as text and JSON. `names` and `tensors` have equal sizes and
// belong together by index.

/// A table with type, range and first elements of each tensor.
std::string OutputsText(const std::vector<std::string>& names,
                        const std::vector<HostTensor>& tensors);
nlohmann::ordered_json OutputsJson(const std::vector<std::string>& names,
                                   const std::vector<HostTensor>& tensors);

/// "max_abs", "max_rel" and "outside"; infinite values, which JSON lacks, are the text "inf".
nlohmann::ordered_json DifferenceJson(const Difference& difference);

/// The source of the inputs: "random inputs", "the inputs in DIR".
std::string SourceText(const RunInputs& inputs);

/// "1.2 ms"; for several samples "1.2 ms, median of 9, 95 % interval ...".
std::string LatencyText(const std::vector<double>& samples_us);

/// Writes the tensors to the directory of --out. Bad input, naming the option; errors of writing
/// stay unchanged (IsUnwritable).
absl::Status SaveOutputs(const Arguments& arguments, const std::vector<std::string>& names,
                         const std::vector<HostTensor>& tensors);

}  // namespace fusion
