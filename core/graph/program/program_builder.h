#pragma once

#include <unordered_map>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Converts op calls to the loop ops of a Program. Used by BuildProgram and EvaluateCall; internal
/// to the graph layer. Not thread-safe.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(ProgramOptions options) : options_(options) {}

  /// A tensor under construction: the value `base`, or a view of it.
  struct Handle {
    ValueId base = 0;
    /// Empty: the base itself. Otherwise reads[0] indexes the base and `write` indexes this tensor.
    std::optional<LoopBody> view;
    NodeId origin = kNoNode;
    int step = 0;  // LoopOp::step for a copy of it
    int shape_class = Value::kUnknownClass;
  };

  ValueId AddValue(Value value);
  /// AddInput adds the next input of the program, AddWeight the next weight.
  ValueId AddInput(TensorType type, TensorId tensor = kNoTensor);
  /// Sets Value::shape_class of an input, weight or constant.
  void Classify(ValueId leaf, int shape_class) {
    program_.values[static_cast<size_t>(leaf)].shape_class = shape_class;
  }
  ValueId AddWeight(TensorType type, TensorId tensor = kNoTensor);

  /// Adds the loop ops of one call. `inputs[i]` is ignored where the call has no input i. `step`:
  /// the call is a step of a decomposition, not a node. Returns one handle per output; fails as
  /// CheckLimits does.
  absl::StatusOr<std::vector<Handle>> AddCall(const OpCall& call, const std::vector<Handle>& inputs,
                                              NodeId origin, bool step = false);
  /// The value of a handle in memory. A view is written by a "Copy" op.
  ValueId Materialise(const Handle& handle);
  /// Sets Value::tensor of the value of a handle. No effect for a view or a value that has a name.
  void Name(const Handle& handle, TensorId tensor);
  /// Adds the next output of the program: a value of its own that the program writes. A copy is
  /// added if the handle is an input, a constant, a view, a reinterpretation or an output already.
  /// `handle` becomes the output value.
  void AddOutput(Handle* handle);

  /// ResourceExhausted if the ops added so far exceed a limit of ProgramOptions or of the bytes of
  /// one program; the error of CheckTensorSize if a tensor is too large.
  absl::Status CheckLimits() const;
  /// Returns the program without unread values. `followed`: value numbers to keep and to update to
  /// the final numbering.
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
  /// AddLoop with arithmetic on 16-bit floats done in f32.
  absl::StatusOr<Handle> AddWideLoop(std::string label, LoopBody body, std::vector<Handle> inputs,
                                     NodeId origin);
  ValueId AddComputed(std::string label, LoopBody body, std::vector<ValueId> inputs, NodeId origin);
  /// AddComputed for a body that NormaliseInputs has already processed.
  ValueId AddNormalised(std::string label, LoopBody body, std::vector<ValueId> inputs,
                        NodeId origin);
  Handle InSingle(const Handle& half, NodeId origin);
  absl::StatusOr<std::vector<Handle>> AddDecomposition(const OpCall& call,
                                                       const std::vector<Handle>& inputs,
                                                       NodeId origin);
  enum class StepsOf : uint8_t {
    kComposite,  // they are not nodes
    kCastLike,   // they are not nodes, but their results are rounded
    kBody,       // each is a node of a loop body
  };
  /// Adds the ops of the steps; their results are appended to `types` and `handles`.
  absl::Status AddSteps(const std::vector<Decomposition::Step>& steps, NodeId origin, StepsOf of,
                        std::vector<std::optional<TensorType>>* types,
                        std::vector<Handle>* handles);
  absl::StatusOr<std::vector<Handle>> AddRepeat(const OpCall& call,
                                                const std::vector<Handle>& inputs, NodeId origin,
                                                bool inner);
  /// The kRepeat op with the inputs of its operands only (not those before first_operand()).
  absl::StatusOr<LoopOp> RepeatOp(std::shared_ptr<const Repeat> body,
                                  const std::vector<Handle>& operands, NodeId origin, bool inner);
  TensorType TypeOf(const Handle& handle) const;
  /// The value of a handle, stored in row-major order.
  ValueId InMemory(const Handle& handle);
  /// True if the value depends on weights and constants only.
  bool IsConstant(ValueId id);
  absl::StatusOr<Handle> AddOpaque(const OpCall& call, const std::vector<Handle>& inputs,
                                   NodeId origin);
  absl::StatusOr<Handle> AddReinterpret(const OpCall& call, const Handle& input, NodeId origin);
  Expr FormOf(ValueId id);
  void NormaliseInputs(LoopBody* body, std::vector<ValueId>* inputs);
  void DropUnread(const std::vector<ValueId*>& followed);
  void NoteDirectUse(ValueId value, const LoopBody& body, size_t input);

  ProgramOptions options_;
  int step_ = 0;     // LoopOp::step of ops that are being added
  int steps_ = 0;    // steps so far
  StepCount count_;  // of the calls so far, copies of views included
  double value_bytes_ = 0;
  absl::Status too_large_;  // the first value that is
  Program program_;
  std::unordered_map<ValueId, ValueId> singles_;  // 16-bit floats and their casts to f32
  std::vector<bool> constant_;  // by value, for the first ones that IsConstant has seen
  std::unordered_map<ValueId, Expr> forms_;  // of functions of the coordinates; empty: it is none
  // How ops that use a value directly index it: all through one permutation, or mixed.
  struct DirectUse {
    bool any = false;
    bool mixed = false;
    std::vector<int> permutation;
  };
  std::vector<DirectUse> direct_uses_;
};

/// Turns weights of loop bodies into inputs if their operands are not known before a run
/// (KnownBeforeRuns). Also in nested bodies.
void SettleWeights(Program* program);

bool IsScalarConstant(const Value& value);
bool ReadsAtInputs(const LoopBody& body);

}  // namespace fusion
