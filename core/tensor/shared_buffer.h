#pragma once

#include <string>

#include "core/tensor/shape.h"

namespace fusion {

/// An input and an output in one piece of the caller's memory, as a cache of keys is: the output
/// holds the input's elements and, behind them along one dim, new ones. A run writes the new ones
/// only. Both lie row-major as if `dim` had `capacity` elements.
struct SharedBuffer {
  int input = 0;   // position among the inputs
  int output = 0;  // and among the outputs
  int dim = 0;
  int64_t capacity = 0;  // elements along `dim` that there is memory for
  bool operator==(const SharedBuffer&) const = default;
};

/// One that a caller asks for, by name.
struct SharedNames {
  std::string input;
  std::string output;
  int64_t capacity = 0;  // 0: as many as the output has
  bool operator==(const SharedNames&) const = default;
};

/// The dims of the memory behind a tensor of these dims.
Dims WithCapacity(const SharedBuffer& shared, Dims dims);

}  // namespace fusion
