#include "core/tensor/output_extent.h"

#include <algorithm>

#include "core/tensor/rows.h"

namespace fusion {

size_t ModelOutputs(size_t outputs, const std::vector<OutputExtent>& extents) {
  for (const OutputExtent& e : extents) outputs = std::min(outputs, static_cast<size_t>(e.count));
  return outputs;
}

absl::Status CutOutputs(const std::vector<OutputExtent>& extents,
                        std::vector<HostTensor>* outputs) {
  for (const OutputExtent& e : extents) {
    HostTensor& output = (*outputs)[static_cast<size_t>(e.output)];
    const auto dim = static_cast<size_t>(e.dim);
    const int64_t count = (*outputs)[static_cast<size_t>(e.count)].GetInt(0);
    if (count < 0 || count > output.dims()[dim]) {
      return Internal("output ", e.output, " has ", count, " elements along dim ", e.dim,
                      ", expected 0..", output.dims()[dim]);
    }
    if (count < output.dims()[dim]) output = FirstRows(output, dim, count);
  }
  outputs->resize(ModelOutputs(outputs->size(), extents));
  return absl::OkStatus();
}

}  // namespace fusion
