#include "core/tensor/shared_buffer.h"

namespace fusion {

Dims WithCapacity(const SharedBuffer& shared, Dims dims) {
  dims[static_cast<size_t>(shared.dim)] = shared.capacity;
  return dims;
}

}  // namespace fusion
