#pragma once

#include <unordered_map>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Takes op calls apart into the loop ops of a Program. Internal to the graph layer: BuildProgram
/// and EvaluateCall share it.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(ProgramOptions options) : options_(options) {}

  /// A tensor under construction: `base`, or a view of it.
  struct Handle {
    ValueId base = 0;
    /// Absent: the base itself. Else reads[0] indexes the base, write is this tensor.
    std::optional<LoopBody> view;
    NodeId origin = kNoNode;
    int step = 0;  // LoopOp::step of a copy of it
    int shape_class = Value::kUnknownClass;
  };

  ValueId AddValue(Value value);
  /// The next input or weight of the program.
  ValueId AddInput(TensorType type, TensorId tensor = kNoTensor);
  /// Value::shape_class of an input, a weight or a constant.
  void Classify(ValueId leaf, int shape_class) {
    program_.values[static_cast<size_t>(leaf)].shape_class = shape_class;
  }
  ValueId AddWeight(TensorType type, TensorId tensor = kNoTensor);

  /// Adds the loop ops of one call; `inputs[i]` is unused where the call has no input i. Returns
  /// one handle an output. `step`: the call is one of a decomposition, no node asks for it.
  /// What CheckLimits says beyond the limits of one program.
  absl::StatusOr<std::vector<Handle>> AddCall(const OpCall& call, const std::vector<Handle>& inputs,
                                              NodeId origin, bool step = false);
  /// The value behind a handle; a view is written to memory by a "Copy".
  ValueId Materialise(const Handle& handle);
  /// Declares the graph tensor a handle holds, where it is a value of its own.
  void Name(const Handle& handle, TensorId tensor);
  /// Declares the next output: memory of its own that the program writes. An input or constant
  /// passed through is copied, and so is memory under another shape, and a value that is an
  /// output already. `handle` becomes that value.
  void AddOutput(Handle* handle);

  /// ResourceExhausted, or InvalidArgument for a tensor that is too large, where what was added so
  /// far is beyond the limits of one program.
  absl::Status CheckLimits() const;
  /// `followed`: values that are to be named by what they are in the program.
  Program Finish(const std::vector<ValueId*>& followed = {}) &&;
  Program& program() { return program_; }

 private:
  absl::StatusOr<std::vector<Handle>> AddOps(const OpCall& call, const std::vector<Handle>& inputs,
                                             NodeId origin, bool step);
  bool IsNothing(const Handle& handle) const;
  ValueId AddNothing(TensorType type);
  std::vector<bool> RepeatsOfNothing(const std::vector<bool>& named) const;
  void InlineIndices(LoopBody* body, std::vector<Handle>* inputs) const;
  absl::StatusOr<Handle> AddLoop(std::string label, LoopBody body, std::vector<Handle> inputs,
                                 NodeId origin);
  /// The same without arithmetic on 16-bit floats.
  absl::StatusOr<Handle> AddWideLoop(std::string label, LoopBody body, std::vector<Handle> inputs,
                                     NodeId origin);
  ValueId AddComputed(std::string label, LoopBody body, std::vector<ValueId> inputs, NodeId origin);
  /// The same where NormaliseInputs has been at it.
  ValueId AddNormalised(std::string label, LoopBody body, std::vector<ValueId> inputs,
                        NodeId origin);
  Handle InSingle(const Handle& half, NodeId origin);
  absl::StatusOr<std::vector<Handle>> AddDecomposition(const OpCall& call,
                                                       const std::vector<Handle>& inputs,
                                                       NodeId origin);
  enum class StepsOf : uint8_t {
    kComposite,  // no node asks for them
    kCastLike,   // likewise, but they round what they give
    kBody,       // each is what a node is elsewhere
  };
  /// Adds what steps compute behind `types` and `handles`.
  absl::Status AddSteps(const std::vector<Decomposition::Step>& steps, NodeId origin, StepsOf of,
                        std::vector<std::optional<TensorType>>* types,
                        std::vector<Handle>* handles);
  absl::StatusOr<std::vector<Handle>> AddRepeat(const OpCall& call,
                                                const std::vector<Handle>& inputs, NodeId origin,
                                                bool inner);
  /// The op of a repeat: all but what it reads before its operands.
  absl::StatusOr<LoopOp> RepeatOp(std::shared_ptr<const Repeat> body,
                                  const std::vector<Handle>& operands, NodeId origin, bool inner);
  TensorType TypeOf(const Handle& handle) const;
  /// In memory, in row-major order.
  ValueId InMemory(const Handle& handle);
  /// Follows from weights and constants alone.
  bool IsConstant(ValueId id);
  absl::StatusOr<Handle> AddOpaque(const OpCall& call, const std::vector<Handle>& inputs,
                                   NodeId origin);
  absl::StatusOr<Handle> AddReinterpret(const OpCall& call, const Handle& input, NodeId origin);
  Expr FormOf(ValueId id);
  void NormaliseInputs(LoopBody* body, std::vector<ValueId>* inputs);
  void DropUnread(const std::vector<ValueId*>& followed);
  void NoteDirectUse(ValueId value, const LoopBody& body, size_t input);

  ProgramOptions options_;
  int step_ = 0;     // LoopOp::step of what is added
  int steps_ = 0;    // so far
  StepCount count_;  // of the calls so far, copies of views included
  double value_bytes_ = 0;
  absl::Status too_large_;  // the first value that is
  Program program_;
  std::unordered_map<ValueId, ValueId> singles_;  // 16-bit floats and the same in f32
  std::vector<bool> constant_;                    // by value, as far as asked for
  std::unordered_map<ValueId, Expr> forms_;  // of what is a function of its coordinates; empty: not
  // How a value is looked at by the ops that use it directly: all through one permutation, or
  // otherwise.
  struct DirectUse {
    bool any = false;
    bool mixed = false;
    std::vector<int> permutation;
  };
  std::vector<DirectUse> direct_uses_;
};

/// Weights of bodies that are none, because what they are made from is not known before a run
/// (KnownBeforeRuns), become inputs; in bodies within bodies too.
void SettleWeights(Program* program);

bool IsScalarConstant(const Value& value);
bool ReadsAtInputs(const LoopBody& body);

}  // namespace fusion
