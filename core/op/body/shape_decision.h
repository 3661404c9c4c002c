#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusion {

/// A number, possibly derived from shapes, on which the form of an op depends. A plan with open
/// (symbolic) dims is valid for all their values only if every such decision is the same for all of
/// them.
struct ShapeDecision {
  /// The property of the number that must be the same for all values of the open dims.
  enum class Keeps : uint8_t {
    kNegative,  // whether the number is below 0
    kOrder,     // at least 0 everywhere, or at most 0 everywhere
    kZero,      // whether the number is 0
    kForm,      // one polynomial of the open dims gives the number
    kNumber,    // the number itself
  };
  Keeps keeps = Keeps::kNumber;
  double number = 0;
};

/// Decisions in the order in which they were made, up to a limit. Not thread-safe.
class DecisionLog {
 public:
  /// Drops decisions beyond `limit`; over() reports that.
  explicit DecisionLog(size_t limit) : limit_(limit) {}

  void Add(ShapeDecision::Keeps keeps, double number) {
    if (decisions_.size() < limit_) {
      decisions_.push_back({keeps, number});
    } else {
      over_ = true;
    }
  }

  /// True if there were more decisions than the limit.
  bool over() const { return over_; }
  const std::vector<ShapeDecision>& decisions() const { return decisions_; }

 private:
  size_t limit_;
  bool over_ = false;
  std::vector<ShapeDecision> decisions_;
};

}  // namespace fusion
