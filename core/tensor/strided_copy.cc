#include "core/tensor/strided_copy.h"

#include <cstdint>
#include <cstring>

namespace fusion {
namespace {

struct Walk {
  const Dims& dims;
  const Dims& from_strides;
  const Dims& to_strides;
  int64_t bytes;  // of one element

  void Run(size_t dim, const std::byte* from, std::byte* to) const {
    if (dim == dims.size()) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
      return;
    }
    const bool run = dim + 1 == dims.size() && from_strides[dim] == 1 && to_strides[dim] == 1;
    if (run) {
      std::memcpy(to, from, static_cast<size_t>(dims[dim] * bytes));
      return;
    }
    for (int64_t i = 0; i < dims[dim]; ++i) {
      Run(dim + 1, from + i * from_strides[dim] * bytes, to + i * to_strides[dim] * bytes);
    }
  }
};

}  // namespace

void CopyStrided(DType dtype, const Dims& dims, const std::byte* from, const Dims& from_strides,
                 std::byte* to, const Dims& to_strides) {
  for (int64_t extent : dims) {
    if (extent == 0) return;
  }
  Walk{dims, from_strides, to_strides, DTypeBytes(dtype)}.Run(0, from, to);
}

}  // namespace fusion
