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

/// One use of an op: its input types and attributes. What op definitions look at. Absent optional
/// inputs have no type.
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
  /// Type of a present input.
  const TensorType& in(int i) const { return *inputs_[static_cast<size_t>(i)]; }
  const Shape& shape(int i) const { return in(i).shape; }
  DType dtype(int i) const { return in(i).dtype; }
  const AttrMap& attrs() const { return attrs_; }
  /// Number of outputs the node names.
  int outputs() const { return outputs_; }

  /// Which input of an ONNX node input i is, for messages: what is an attribute for us counts too.
  int NumberOf(int i) const;
  /// Element of input i as an expression leaf.
  Expr In(int i) const { return Expr::Input(i, dtype(i)); }

  /// `axis` in [0, rank) from one in [-rank, rank), or InvalidArgument.
  absl::StatusOr<int> NormaliseAxis(int64_t axis, int rank) const;
  /// The same for a list, sorted; refuses duplicates.
  absl::StatusOr<std::vector<int>> NormaliseAxes(const std::vector<int64_t>& axes, int rank) const;
  /// InvalidArgument unless input a's dim i equals input b's dim j.
  absl::Status CheckSameExtent(int a, int i, int b, int j) const;
  /// InvalidArgument unless the inputs a and b have one element type.
  absl::Status CheckSameType(int a, int b) const;
  absl::Status CheckRankAtLeast(int input, int rank) const;

 private:
  const OpDef* def_;
  std::vector<std::optional<TensorType>> inputs_;
  AttrMap attrs_;
  int outputs_;
};

/// What a call is taken apart into, down to ops that are not composites.
struct StepCount {
  int64_t loop_ops = 0;  // views included
  int64_t constant_bytes = 0;
};

/// A composite op in terms of others, written down step by step. Types are inferred as the steps
/// are added.
///
///   auto max = d.Apply("ReduceMax", {x}, {{"axes", axes}, {"keepdims", 1}});
class Decomposition {
 public:
  using Value = int;

  struct Options {
    /// Recurrences are a Repeat however few their steps are.
    bool short_repeats = false;
  };

  explicit Decomposition(const OpCall& call) : Decomposition(call, Options()) {}
  Decomposition(const OpCall& call, const Options& options);

  const OpCall& call() const { return *call_; }
  const Options& options() const { return options_; }
  Value in(int i) const { return i; }
  /// A scalar constant (rank 0).
  Value Scalar(DType type, double value);
  /// A constant tensor that follows from types and attributes.
  Value Constant(HostTensor constant);
  /// Another op with one output.
  absl::StatusOr<Value> Apply(std::string_view op, std::vector<Value> inputs, AttrMap attrs = {});
  /// Another op with so many outputs.
  absl::StatusOr<std::vector<Value>> ApplyMulti(std::string_view op, std::vector<Value> inputs,
                                                AttrMap attrs, int outputs);
  /// Declares output `index` > 0 of an op with optional outputs; output 0 is what OpDef::decompose
  /// returns.
  void SetOutput(int index, Value v) { more_outputs_[static_cast<size_t>(index - 1)] = v; }

  struct Step {
    const OpDef* def = nullptr;  // null: a constant
    std::vector<Value> inputs;
    AttrMap attrs;
    std::optional<HostTensor> constant;
    int outputs = 1;
  };
  /// In order; they define the values behind the inputs of the call, each as many as it has
  /// outputs.
  const std::vector<Step>& steps() const { return steps_; }
  std::vector<Step> TakeSteps() && { return std::move(steps_); }
  const TensorType& type(Value v) const { return *types_[static_cast<size_t>(v)]; }
  /// Of the steps so far, those inside composite steps included.
  const StepCount& count() const { return count_; }
  /// Outputs 1, 2, ... that the call names, in order.
  const std::vector<Value>& more_outputs() const { return more_outputs_; }

 private:
  const OpCall* call_;
  Options options_;
  std::vector<std::optional<TensorType>> types_;
  std::vector<Step> steps_;
  StepCount count_;
  std::vector<Value> more_outputs_;
};

/// Largest magnitude of an integer attribute that does not say `any_integer`.
inline constexpr int64_t kMaxParam = int64_t{1} << 31;

/// An attribute of an op. ONNX may deliver it as an attribute or, since some opset, as a constant
/// input: such inputs are taken out of a node's inputs, those behind them move up. A list of
/// strings is one string, joined by commas.
struct ParamSpec {
  enum Kind { kInt, kInts, kFloat, kFloats, kString, kTensor, kRepeat };
  std::string name;
  Kind kind = kInt;
  /// ONNX input that carries it when the attribute is absent; -1: never an input.
  int onnx_input = -1;
  /// Absent is an error.
  bool required = false;
  /// kInt, kInts: any 64-bit integer may be meant. Others of ops that models name lie within
  /// kMaxParam, so that definitions may add and multiply two of them.
  bool any_integer = false;
  /// An input that only a run knows counts as absent: not every use of the op looks at it.
  bool unknown_is_absent = false;
  /// An input that only a run knows is the last operand that the op can have.
  bool unknown_is_operand = false;
};

/// What the opset normaliser may look at and change before a node becomes ours: attributes written
/// by an older or newer opset, optional inputs.
struct OnnxCall {
  int opset = 0;
  AttrMap& attrs;
  /// Types of the node's inputs after constant inputs became attributes; nullopt where absent.
  const std::vector<std::optional<TensorType>>& inputs;
};

/// The newest ONNX opset that models may use. A new one may only be let in together with what it
/// changes: ops of a higher version are looked through before this is raised.
inline constexpr int kNewestOpset = 28;

/// The record one file of op/defs fills in: the only place that knows an op.
///
/// Exactly one of `body`, `decompose`, `opaque`, `value_of_types` and `repeats` gives the meaning.
struct OpDef {
  /// ONNX's name; of other domains "domain.Name".
  std::string name;
  int min_inputs = 1;
  int max_inputs = 1;
  std::vector<ParamSpec> params = {};
  /// First and last ONNX opset whose meaning this is, after `normalise`.
  int min_opset = 1;
  int max_opset = kNewestOpset;
  /// Opsets before this one have no such op in ONNX: models that name it mean ONNX Runtime's, which
  /// ignores attributes that it does not know.
  int lenient_below = 0;
  /// A step of our own decompositions: no model may name it.
  bool internal = false;

  /// Number of outputs; unset: output 0 and, at the node's choice, optional ones up to max_outputs.
  std::function<absl::StatusOr<int>(const OpCall&)> outputs = nullptr;
  int max_outputs = 1;

  /// Dims whose extents a run decides; set: every call has all outputs. Types say the most elements
  /// that there can be. How many there are is what the last output says, an i64 scalar that no
  /// model names. Calls of one op with `outputs` may have none.
  struct Counted {
    int output = 0;
    int dim = 0;
  };
  std::function<std::vector<Counted>(const OpCall&)> counted = nullptr;
  /// Outputs that a model may name, at most.
  int named_outputs() const { return counted ? max_outputs - 1 : max_outputs; }

  /// Primitive: the loop body of output `output`.
  std::function<absl::StatusOr<LoopBody>(const OpCall&, int output)> body = nullptr;
  /// Opaque: the type of the one output. What it does, evaluator, schedules and backends know by
  /// the op's name (core/op/indexed/opaque.h).
  std::function<absl::StatusOr<TensorType>(const OpCall&)> opaque = nullptr;
  /// Composite: the value of output 0 in terms of other ops; Decomposition::SetOutput gives further
  /// ones.
  std::function<absl::StatusOr<Decomposition::Value>(Decomposition&)> decompose = nullptr;
  /// Of a composite that `decompose` takes static shapes of: the types of all outputs of a call
  /// with symbolic dims. Unset: as of its steps.
  std::function<absl::StatusOr<std::vector<TensorType>>(const OpCall&)> symbolic_types = nullptr;
  /// The Repeat that attribute "body" of every call is.
  bool repeats = false;
  /// Constant that depends on input types only (Shape, Size).
  std::function<absl::StatusOr<HostTensor>(const OpCall&)> value_of_types = nullptr;
  /// Same elements in row-major order under another shape, where no loop form exists (a reshape
  /// without common factors): costs nothing but is a fusion barrier. Used when `body` answers
  /// kUnimplemented.
  std::function<absl::StatusOr<TensorType>(const OpCall&)> reinterpret = nullptr;

  /// Adds the numbers, made of attributes and extents, that decide what a call means (a slice that
  /// is cut short by the extent). Unset: there are none.
  std::function<void(const OpCall&, DecisionLog*)> decisions = nullptr;

  /// Rewrites attributes of older ONNX opsets to today's meaning.
  std::function<absl::Status(OnnxCall&)> normalise = nullptr;
};

/// Every op, sorted by name. Built once from op/defs; any thread.
const std::vector<const OpDef*>& AllOps();
/// By name, or nullptr.
const OpDef* FindOp(std::string_view name);
/// By name, or nullptr; not the internal ones.
const OpDef* FindModelOp(std::string_view name);
/// "Abs, Add, ...": what FindModelOp finds.
std::string ListModelOps();

}  // namespace fusion
