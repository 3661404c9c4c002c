#pragma once

#include <vector>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// An extent that a run decides. The tensor of the output is as large as it can get; another
/// output, an i64 scalar behind all outputs of the model, says how many elements there are.
struct OutputExtent {
  int output = 0;
  int dim = 0;
  int count = 0;  // position among the outputs
  bool operator==(const OutputExtent&) const = default;
};

/// How many of `outputs` outputs are the model's own: the first ones.
size_t ModelOutputs(size_t outputs, const std::vector<OutputExtent>& extents);

/// Cuts the outputs of a run down to what the counts among them say, and drops the counts. Internal
/// for a count that is no extent of its output. `extents` fit the outputs.
absl::Status CutOutputs(const std::vector<OutputExtent>& extents, std::vector<HostTensor>* outputs);

}  // namespace fusion
