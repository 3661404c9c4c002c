#include "core/tensor/output_extent.h"

#include <algorithm>
#include <cstring>

namespace fusion {
namespace {

// The first `count` elements along `dim`.
HostTensor FirstAlong(const HostTensor& whole, size_t dim, int64_t count) {
  Dims dims = whole.dims();
  int64_t rows = 1;
  for (size_t d = 0; d < dim; ++d) rows *= dims[d];
  int64_t inner = DTypeBytes(whole.dtype());
  for (size_t d = dim + 1; d < dims.size(); ++d) inner *= dims[d];
  const int64_t from = dims[dim] * inner;
  const int64_t to = count * inner;
  dims[dim] = count;
  HostTensor out(whole.dtype(), std::move(dims));
  for (int64_t r = 0; r < rows && to > 0; ++r) {
    std::memcpy(out.bytes() + r * to, whole.bytes() + r * from, static_cast<size_t>(to));
  }
  return out;
}

}  // namespace

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
    if (count < output.dims()[dim]) output = FirstAlong(output, dim, count);
  }
  outputs->resize(ModelOutputs(outputs->size(), extents));
  return absl::OkStatus();
}

}  // namespace fusion
