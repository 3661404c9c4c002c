#pragma once

#include <string>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Passes of one body, one after the other: what ONNX's Loop and Scan are, and the steps of a long
/// recurrence. The body is written down as steps of ops on its inputs; value i of it is input i,
/// the steps define the next ones.
///
/// A call of the op "Repeat" has as inputs, where they are asked for, the number of passes
/// (`counted`, an i64 scalar) and whether there is a first one (`conditional`, a bool scalar); then
/// one for each input of the body that is not kPass. Its outputs are what is carried after the last
/// pass, in the order of the inputs that carry it; then for each further output of the body what
/// all passes gave, along a new first dim of `most` elements; then, if there are such and a run
/// decides how many passes are made, that number (i64 scalar).
struct Repeat {
  /// Where an input of the body comes from.
  enum class Port : uint8_t {
    kWhole,           // the operand, the same in every pass
    kCarried,         // the operand, later what the pass before gave
    kElement,         // element i of the operand's first dim in pass i
    kElementFromEnd,  // element most - 1 - i
    kPass,            // i itself, an i64 scalar; no operand
  };
  struct Input {
    Port port = Port::kWhole;
    TensorType type;
  };
  struct Output {
    Decomposition::Value value = 0;
    /// Of a stacked one: that of the first pass is the last element.
    bool from_end = false;
  };
  int64_t most = 0;  // passes at most
  /// `most` is what there is room for: a run that would make more passes fails.
  bool must_end = false;
  bool counted = false;
  bool conditional = false;
  std::vector<Input> inputs;
  std::vector<Decomposition::Step> steps;
  /// If conditional, whether there is a next pass (bool, one element); the next value of each
  /// carried input; what is stacked.
  std::vector<Output> outputs;

  size_t carried() const;
  size_t stacked() const { return outputs.size() - carried() - (conditional ? 1 : 0); }
  /// Outputs of a call.
  size_t results() const { return carried() + stacked() + (tells_passes() ? 1 : 0); }
  bool tells_passes() const { return (counted || conditional) && stacked() > 0; }
};

/// Most passes of a repeat whose number a run decides: as much room its stacked outputs have.
inline constexpr int64_t kMaxCountedPasses = 4096;
/// Bodies within bodies that a text may have.
inline constexpr int kMaxRepeatDepth = 64;
/// Inputs and outputs of one call.
inline constexpr int kMaxRepeatOperands = 4096;
/// Passes of any repeat.
inline constexpr int64_t kMaxPasses = int64_t{1} << 31;

/// Of a call of Repeat: attribute "body", or null.
const Repeat* RepeatOf(const OpCall& call);

/// Of `passes` elements of `type`, one after the other.
TensorType StackedType(const TensorType& type, int64_t passes);

/// Types of the outputs of a call of Repeat, whose body is checked with them. InvalidArgument names
/// the input or output of the body that does not fit. `count`: as InferOutputTypes.
absl::StatusOr<std::vector<TensorType>> RepeatTypes(const OpCall& call, StepCount* count);

/// "repeat 3 counted {whole f32[2,3], carried f32[2,3], %2 = MatMul(%1, %0), out %2}"
std::string ToString(const Repeat& repeat);
/// Inverse of ToString.
absl::StatusOr<Repeat> ParseRepeat(Lexer& in);

}  // namespace fusion
