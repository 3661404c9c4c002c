#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/op/attr.h"
#include "core/op/body/loop_body.h"
#include "core/op/body/shape_decision.h"

namespace fusion {

struct OpDef;

/// One call of an op: its input types, attributes and number of outputs. This is all that an op
/// definition sees. An absent optional input has no type. Refers to `def`, which must outlive it.
class OpCall {
 public:
  OpCall(const OpDef& def, std::vector<std::optional<TensorType>> inputs, AttrMap attrs,
         int outputs = 1)
      : def_(&def), inputs_(std::move(inputs)), attrs_(std::move(attrs)), outputs_(outputs) {}

  const OpDef& def() const { return *def_; }
  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has_input(int i) const {
    return i < inputs() && inputs_[static_cast<size_t>(i)].has_value();
  }
  /// Type of input i, which must be present.
  const TensorType& in(int i) const { return *inputs_[static_cast<size_t>(i)]; }
  const Shape& shape(int i) const { return in(i).shape; }
  DType dtype(int i) const { return in(i).dtype; }
  const AttrMap& attrs() const { return attrs_; }
  /// Number of outputs of the node.
  int outputs() const { return outputs_; }

  /// Number that input i has in the ONNX node, for error messages. ONNX also counts the inputs that
  /// are attributes here (ParamSpec::onnx_input).
  int NumberOf(int i) const;
  /// Element of input i as an expression leaf.
  Expr In(int i) const { return Expr::Input(i, dtype(i)); }

  /// Maps `axis` from [-rank, rank) to [0, rank). InvalidArgument if it is outside.
  absl::StatusOr<int> NormaliseAxis(int64_t axis, int rank) const;
  /// The same for a list; the result is sorted. InvalidArgument also for duplicates.
  absl::StatusOr<std::vector<int>> NormaliseAxes(const std::vector<int64_t>& axes, int rank) const;
  /// InvalidArgument unless input a's dim i equals input b's dim j.
  absl::Status CheckSameExtent(int a, int i, int b, int j) const;
  /// InvalidArgument unless the inputs a and b have one element type.
  absl::Status CheckSameType(int a, int b) const;
  /// InvalidArgument if the input has fewer than `rank` dims.
  absl::Status CheckRankAtLeast(int input, int rank) const;

 private:
  const OpDef* def_;
  std::vector<std::optional<TensorType>> inputs_;
  AttrMap attrs_;
  int outputs_;
};

/// Size of the full expansion of a call, down to ops that are not composites.
struct StepCount {
  int64_t loop_ops = 0;  // views included
  int64_t constant_bytes = 0;
};

/// Builder for the expansion of a composite op into other ops. Each step infers the types of its
/// outputs when it is added.
///
///   auto max = d.Apply("ReduceMax", {x}, {{"axes", axes}, {"keepdims", 1}});
///
/// Refers to the call, which must outlive it. Not thread-safe.
class Decomposition {
 public:
  /// Number of a value: first the inputs of the call (absent ones too), then the outputs of the
  /// steps, in order.
  using Value = int;

  struct Options {
    /// Recurrences become a Repeat even if they have few steps (kMostStepsWrittenOut).
    bool short_repeats = false;
  };

  explicit Decomposition(const OpCall& call) : Decomposition(call, Options()) {}
  Decomposition(const OpCall& call, const Options& options);

  const OpCall& call() const { return *call_; }
  const Options& options() const { return options_; }
  /// Input i of the call. If it is absent, the value may only be passed on as an absent input.
  Value in(int i) const { return i; }
  /// A scalar constant (rank 0).
  Value Scalar(DType type, double value);
  /// A constant tensor; it may depend on the types and attributes of the call only.
  Value Constant(HostTensor constant);
  /// Adds a step that calls `op` and returns its one output. `op` must be the name of a known op
  /// (else it aborts). Errors are those of InferOutputTypes, and InvalidArgument for an output that
  /// is too large (CheckStepSize).
  absl::StatusOr<Value> Apply(std::string_view op, std::vector<Value> inputs, AttrMap attrs = {});
  /// The same for a step with `outputs` outputs.
  absl::StatusOr<std::vector<Value>> ApplyMulti(std::string_view op, std::vector<Value> inputs,
                                                AttrMap attrs, int outputs);
  /// Sets output `index` > 0 of the call; the call must name it. Output 0 is the return value of
  /// OpDef::decompose.
  void SetOutput(int index, Value v) { more_outputs_[static_cast<size_t>(index - 1)] = v; }

  struct Step {
    const OpDef* def = nullptr;  // null: `constant`
    std::vector<Value> inputs;
    AttrMap attrs;
    std::optional<HostTensor> constant;
    int outputs = 1;
  };
  /// In order. Step by step, their outputs are the values that follow the inputs of the call.
  const std::vector<Step>& steps() const { return steps_; }
  std::vector<Step> TakeSteps() && { return std::move(steps_); }
  /// Type of a value, which must not be an absent input.
  const TensorType& type(Value v) const { return *types_[static_cast<size_t>(v)]; }
  /// Size of the steps so far, including the steps inside composite steps.
  const StepCount& count() const { return count_; }
  /// Outputs 1, 2, ... of the call, in order; -1: not set.
  const std::vector<Value>& more_outputs() const { return more_outputs_; }

 private:
  const OpCall* call_;
  Options options_;
  std::vector<std::optional<TensorType>> types_;
  std::vector<Step> steps_;
  StepCount count_;
  std::vector<Value> more_outputs_;
};

/// Largest magnitude of an integer attribute without ParamSpec::any_integer.
inline constexpr int64_t kMaxParam = int64_t{1} << 31;

/// Declaration of an attribute of an op. In ONNX it is an attribute or, since some opset, a
/// constant input. The importer removes such an input from the node's inputs; later inputs move up.
/// A list of strings is one string, joined by commas.
struct ParamSpec {
  enum Kind { kInt, kInts, kFloat, kFloats, kString, kTensor, kRepeat };
  std::string name;
  Kind kind = kInt;
  /// ONNX input that carries it when the attribute is absent; -1: never an input.
  int onnx_input = -1;
  /// A call without it is InvalidArgument.
  bool required = false;
  /// kInt, kInts: every 64-bit integer is allowed. Without it, and if the op is not internal, the
  /// magnitude is at most kMaxParam, so that a sum or product of two of them fits in 64 bits.
  bool any_integer = false;
  /// An input `onnx_input` that is not a constant counts as absent. Used for parameters that some
  /// calls of the op do not need.
  bool unknown_is_absent = false;
  /// An input `onnx_input` that is not a constant becomes the last operand of the op.
  bool unknown_is_operand = false;
};

/// A node of some ONNX opset, as OpDef::normalise sees it. `attrs` may be changed.
struct OnnxCall {
  int opset = 0;
  AttrMap& attrs;
  /// Types of the inputs after constant inputs became attributes; nullopt: the input is absent.
  const std::vector<std::optional<TensorType>>& inputs;
};

/// The newest ONNX opset that models may use. Before it is raised, every op that the new opset
/// changes must be reviewed.
inline constexpr int kNewestOpset = 28;

/// Definition of an op. Each file of core/op/defs returns one; nothing else defines an op.
///
/// Exactly one of `body`, `decompose`, `opaque`, `value_of_types` and `repeats` is set. It gives
/// the meaning. The functions are pure and may be called from any thread. All but `normalise` may
/// assume that CheckCall accepts the call. They return InvalidArgument for a wrong call and
/// Unimplemented for a valid call that is not supported.
struct OpDef {
  /// ONNX's op type; for other domains "domain.Name".
  std::string name;
  int min_inputs = 1;
  int max_inputs = 1;
  std::vector<ParamSpec> params = {};
  /// First and last ONNX opset in which the op, after `normalise`, has this meaning.
  int min_opset = 1;
  int max_opset = kNewestOpset;
  /// First opset in which ONNX itself defines the op; 0: in all. In models of older opsets the op
  /// is that of ONNX Runtime, which ignores unknown attributes: the importer drops them.
  int lenient_below = 0;
  /// The op is a step of decompositions only; models cannot name it.
  bool internal = false;

  /// Number of outputs of a call. Unset: output 0, and optional ones up to max_outputs.
  std::function<absl::StatusOr<int>(const OpCall&)> outputs = nullptr;
  int max_outputs = 1;

  /// Output dims whose extents depend on the values of an input (NonZero). The output types then
  /// have the largest possible extents. The actual extent is the last output, an i64 scalar that
  /// models do not name. If `counted` is set and `outputs` is not, every call has all max_outputs
  /// outputs. The list may be empty for some calls of an op with `outputs`.
  struct Counted {
    int output = 0;
    int dim = 0;
  };
  std::function<std::vector<Counted>(const OpCall&)> counted = nullptr;
  /// Largest number of outputs that a model may name.
  int named_outputs() const { return counted ? max_outputs - 1 : max_outputs; }

  /// Primitive: the loop body of output `output`.
  std::function<absl::StatusOr<LoopBody>(const OpCall&, int output)> body = nullptr;
  /// Opaque: the type of the one output. The evaluator, the schedules and the backends implement
  /// the op by its name (core/op/indexed/opaque.h).
  std::function<absl::StatusOr<TensorType>(const OpCall&)> opaque = nullptr;
  /// Composite: adds the steps and returns the value of output 0. Decomposition::SetOutput sets
  /// further outputs.
  std::function<absl::StatusOr<Decomposition::Value>(Decomposition&)> decompose = nullptr;
  /// For a composite whose `decompose` needs static shapes: the types of all outputs of a call with
  /// symbolic dims. Unset: `decompose` gives the types of such a call too.
  std::function<absl::StatusOr<std::vector<TensorType>>(const OpCall&)> symbolic_types = nullptr;
  /// The meaning is the Repeat in attribute "body" of the call (core/op/repeat.h).
  bool repeats = false;
  /// The output is a constant that depends on the input types only (Shape, Size).
  std::function<absl::StatusOr<HostTensor>(const OpCall&)> value_of_types = nullptr;
  /// Type of the output if `body` returns Unimplemented because no loop body exists (a reshape
  /// without common factors). The output has the elements of input 0 in row-major order. It costs
  /// nothing but is a fusion barrier.
  std::function<absl::StatusOr<TensorType>(const OpCall&)> reinterpret = nullptr;

  /// Logs the numbers, computed from attributes and extents, on which the form of the call depends
  /// (a slice end beyond the extent). See ShapeDecision. Unset: there are none.
  std::function<void(const OpCall&, DecisionLog*)> decisions = nullptr;

  /// Rewrites the attributes of a node of another opset to the meaning that `params` declares.
  std::function<absl::Status(OnnxCall&)> normalise = nullptr;
};

/// Every op, sorted by name. Built at the first call from core/op/defs; lives until the process
/// ends. Any thread.
const std::vector<const OpDef*>& AllOps();
/// The op of this name, or nullptr.
const OpDef* FindOp(std::string_view name);
/// The same, but nullptr for internal ops.
const OpDef* FindModelOp(std::string_view name);
/// The names of all ops that models can name: "Abs, Add, ...".
std::string ListModelOps();

}  // namespace fusion
