#pragma once

#include <string>

#include "core/tensor/shape.h"

namespace fusion {

/// An input and an output in one piece of the caller's memory, such as a cache of keys. The output
/// holds the input's elements, followed along `dim` by new ones. A run writes only the new
/// elements. Both are row-major with the strides of a tensor that has `capacity` elements along
/// `dim`.
struct SharedBuffer {
  int input = 0;   // position among the inputs
  int output = 0;  // position among the outputs
  int dim = 0;
  int64_t capacity = 0;  // elements along `dim` that fit in the memory
  bool operator==(const SharedBuffer&) const = default;
};

/// A shared buffer as a caller requests it, by tensor names.
struct SharedNames {
  std::string input;
  std::string output;
  int64_t capacity = 0;  // elements along the dim; 0: as many as the output has
  bool operator==(const SharedNames&) const = default;
};

/// `dims` with the extent of the shared dim replaced by the capacity: the dims of the memory.
Dims WithCapacity(const SharedBuffer& shared, Dims dims);

}  // namespace fusion
