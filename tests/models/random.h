#pragma once

#include <cstdint>

namespace fusion {

/// A small random source whose values are the same on every machine (integer arithmetic only, no
/// library functions): models and test data of one seed have the same bytes everywhere. SplitMix64.
/// Not thread-safe.
class Random {
 public:
  /// Streams of one seed are independent of each other.
  Random(uint64_t seed, uint64_t stream) : state_(seed * 0x9e3779b97f4a7c15u ^ Mix(stream + 1)) {}

  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15u); }

  /// Nearly normal with mean 0 and variance 1: the sum of four uniform numbers, between -3.5
  /// and 3.5.
  float Normal() {
    uint64_t bits = Next();
    auto sum = static_cast<int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                    (bits >> 32 & 0xffff) + (bits >> 48));
    // Four uniforms on 0..65535 have mean 131070 and variance 65536^2 / 3.
    return static_cast<float>(sum - 131070) * (1.7320508f / 65536.0f);
  }

 private:
  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace fusion
