#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/device/target.h"

namespace fusion {

/// Arrays of equal length that are read side by side, and such that are written.
class Streams {
 public:
  /// `bytes`: of all arrays together, at least 4 KiB for each. Touches all of them.
  Streams(int reads, int writes, int64_t bytes);

  int64_t array_floats() const { return floats_; }
  float* read(int i) const { return arrays_[static_cast<size_t>(i)].get(); }
  float* written(int i) const { return arrays_[static_cast<size_t>(reads_ + i)].get(); }

 private:
  using Array = std::unique_ptr<float, decltype(&std::free)>;
  int reads_ = 0;
  int64_t floats_ = 0;
  std::vector<Array> arrays_;
};

/// Reads and writes the floats [begin, end) of all arrays, in multiples of 64: what is read is
/// added up, the sum is written.
using StreamPass = void (*)(const Streams& streams, int64_t begin, int64_t end);

/// The pass over so many arrays with the vectors of `isa`; `streaming`: stores go past the caches.
/// Null for other counts than 1+0, 2+0, 1+1, 2+1 and 3+1.
StreamPass FindStreamPass(int reads, int writes, bool streaming, Isa isa);

}  // namespace fusion
