#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusion {

/// A number that an op looked at to decide what it does, where that number may follow from shapes.
/// A plan that leaves dims open holds for all their values only if every such decision is the same
/// for all of them.
struct ShapeDecision {
  /// What must be the same for all values of the open dims.
  enum class Keeps : uint8_t {
    kNegative,  // whether the number is below 0
    kOrder,     // at least 0 everywhere, or at most 0 everywhere
    kZero,      // whether the number is 0
    kForm,      // the number is one polynomial of the open dims
    kNumber,    // the number itself
  };
  Keeps keeps = Keeps::kNumber;
  double number = 0;
};

/// Decisions in the order in which they are made, up to a limit. Not thread-safe.
class DecisionLog {
 public:
  /// What is beyond `limit` is only noted.
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
