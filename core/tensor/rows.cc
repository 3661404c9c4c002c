#include "core/tensor/rows.h"

#include <cstring>

namespace fusion {
namespace {

// A tensor as blocks of memory: all indices before `dim`, and bytes of one element along it.
struct Blocks {
  int64_t count = 1;
  int64_t element_bytes = 1;
};

Blocks BlocksOf(const HostTensor& tensor, size_t dim) {
  Blocks out{.element_bytes = DTypeBytes(tensor.dtype())};
  const Dims& dims = tensor.dims();
  for (size_t d = 0; d < dim; ++d) out.count *= dims[d];
  for (size_t d = dim + 1; d < dims.size(); ++d) out.element_bytes *= dims[d];
  return out;
}

// The first `count` elements along `dim` of one tensor to those of another.
void CopyRows(const HostTensor& from, size_t dim, int64_t count, HostTensor* to) {
  const Blocks blocks = BlocksOf(from, dim);
  const int64_t bytes = count * blocks.element_bytes;
  if (bytes == 0) return;
  for (int64_t b = 0; b < blocks.count; ++b) {
    std::memcpy(to->bytes() + b * to->dims()[dim] * blocks.element_bytes,
                from.bytes() + b * from.dims()[dim] * blocks.element_bytes,
                static_cast<size_t>(bytes));
  }
}

}  // namespace

HostTensor FirstRows(const HostTensor& whole, size_t dim, int64_t count) {
  Dims dims = whole.dims();
  dims[dim] = count;
  HostTensor out(whole.dtype(), std::move(dims));
  CopyRows(whole, dim, count, &out);
  return out;
}

void ReadFirstRows(const HostTensor& whole, size_t dim, HostTensor* rows) {
  CopyRows(whole, dim, rows->dims()[dim], rows);
}

void WriteFirstRows(const HostTensor& rows, size_t dim, HostTensor* whole) {
  CopyRows(rows, dim, rows.dims()[dim], whole);
}

}  // namespace fusion
