#pragma once

#include <vector>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// An extent that only a run determines. The output's tensor has the largest possible extent. A
/// further output, an i64 scalar behind the outputs of the model, holds the actual number of
/// elements.
struct OutputExtent {
  int output = 0;
  int dim = 0;
  int count = 0;  // position of that scalar among the outputs
  bool operator==(const OutputExtent&) const = default;
};

/// How many of `outputs` outputs belong to the model. They come first; the counts follow.
size_t ModelOutputs(size_t outputs, const std::vector<OutputExtent>& extents);

/// Shrinks the outputs of a run to the extents that the counts among them give, and removes the
/// counts. Internal if a count is not in 0..extent. The positions in `extents` must exist in
/// `outputs`.
absl::Status CutOutputs(const std::vector<OutputExtent>& extents, std::vector<HostTensor>* outputs);

}  // namespace fusion
