#include "core/tensor/bound_strides.h"

#include <algorithm>
#include <numeric>

#include "core/base/text/text.h"

namespace fusion {

absl::Status CheckBoundStrides(const Dims& dims, const Dims& strides, int64_t element_bytes) {
  if (strides.size() != dims.size()) {
    return InvalidArgument(strides.size(), " strides; expected ", dims.size(),
                           ", one for each dim");
  }
  std::vector<size_t> order(dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  const int64_t most = kMaxTensorBytes / element_bytes;
  int64_t span = 1;  // of the dims before
  for (size_t d : order) {
    if (strides[d] < 1 || strides[d] > most) {
      return InvalidArgument("stride ", strides[d], " of dim ", d, "; expected 1..", most);
    }
    if (dims[d] < 2) continue;
    if (strides[d] < span) {
      return InvalidArgument("stride ", strides[d], " of dim ", d, " of ", DimsToString(dims),
                             "; expected at least ", span, ", as far as the dims within it reach");
    }
    if (dims[d] - 1 > (most - span) / strides[d]) {
      return InvalidArgument("the elements of ", DimsToString(dims), " are up to ", strides[d],
                             " * ", dims[d] - 1, " apart; expected at most ", most);
    }
    span += (dims[d] - 1) * strides[d];
  }
  return absl::OkStatus();
}

}  // namespace fusion
