#pragma once

#include <string>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// A loop: one body that is executed in sequential passes. ONNX's Loop and Scan and long
/// recurrences become a Repeat. The body is a list of steps (Decomposition::Step). Value i of the
/// body is input i; the outputs of the steps are the next values.
///
/// Inputs of a call of the op "Repeat", in order:
///   - if `counted`: the number of passes (i64 scalar), clamped to 0..`most`; see `must_end`;
///   - if `conditional`: whether there is a first pass (bool scalar);
///   - one operand for each input of the body that is not kPass.
/// Outputs of the call, in order:
///   - the final value of each kCarried input;
///   - each stacked output of the body: the results of all passes along a new first dim of `most`
///     elements. Elements of passes that were not executed are unspecified;
///   - if tells_passes(): the number of passes that were executed (i64 scalar).
struct Repeat {
  /// Where an input of the body comes from.
  enum class Port : uint8_t {
    kWhole,           // the operand, the same in every pass
    kCarried,         // the operand in pass 0, then the result of the previous pass
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
    /// Stacked outputs only: pass i writes element most - 1 - i.
    bool from_end = false;
  };
  int64_t most = 0;  // maximum number of passes
  /// A run that needs more than `most` passes fails with ResourceExhausted (MorePasses): `most` is
  /// only the reserved memory. False: it stops after `most` passes.
  bool must_end = false;
  bool counted = false;
  bool conditional = false;
  std::vector<Input> inputs;
  std::vector<Decomposition::Step> steps;
  /// In order: if conditional, whether there is a next pass (bool scalar); the next value of each
  /// kCarried input; the stacked outputs.
  std::vector<Output> outputs;

  /// Number of kCarried inputs.
  size_t carried() const;
  /// Number of stacked outputs.
  size_t stacked() const { return outputs.size() - carried() - (conditional ? 1 : 0); }
  /// Number of outputs of a call.
  size_t results() const { return carried() + stacked() + (tells_passes() ? 1 : 0); }
  /// Whether the number of passes is an output of the call.
  bool tells_passes() const { return (counted || conditional) && stacked() > 0; }
};

/// Largest `most` of a repeat with stacked outputs whose number of passes is known only at run
/// time. The stacked outputs reserve memory for `most` passes.
inline constexpr int64_t kMaxCountedPasses = 4096;
/// Largest nesting depth of bodies in a text.
inline constexpr int kMaxRepeatDepth = 64;
/// Largest number of inputs, and of outputs, of one call.
inline constexpr int kMaxRepeatOperands = 4096;
/// Largest `most` of any repeat.
inline constexpr int64_t kMaxPasses = int64_t{1} << 31;

/// Attribute "body" of a call, or nullptr. The call owns it.
const Repeat* RepeatOf(const OpCall& call);

/// The type of `passes` values of `type`, stacked along a new first dim.
TensorType StackedType(const TensorType& type, int64_t passes);

/// Types of the outputs of a call of Repeat, which must have attribute "body". Checks the body.
/// InvalidArgument, naming the input or output of the body, if the operands do not fit it;
/// Unimplemented if the body changes the type of a carried value; errors of its steps. `count`: as
/// in InferOutputTypes.
absl::StatusOr<std::vector<TensorType>> RepeatTypes(const OpCall& call, StepCount* count);

/// "repeat 3 counted {whole f32[2,3], carried f32[2,3], %2 = MatMul(%1, %0), out %2}"
std::string ToString(const Repeat& repeat);
/// Inverse of ToString. InvalidArgument, with the position, also for bodies nested deeper than
/// kMaxRepeatDepth. Types are not checked: RepeatTypes does that.
absl::StatusOr<Repeat> ParseRepeat(Lexer& in);

}  // namespace fusion
