#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace fusion {

using ValueId = int32_t;
using LoopId = int32_t;
inline constexpr ValueId kNoValue = -1;
inline constexpr LoopId kNoLoop = -1;

/// A tensor of a Program.
struct Value {
  TensorType type;
  TensorKind kind = TensorKind::kIntermediate;
  /// kInput: position among the graph's inputs. kWeight: position among the program's weights.
  int index = 0;
  std::shared_ptr<const HostTensor> value;  // kConstant
  LoopId producer = kNoLoop;
  /// Storage order: order[0] is the outermost dim in memory. Empty: row-major.
  std::vector<int> order;
  /// The graph tensor that this value is; kNoTensor inside a composite. In the body of a loop from
  /// a model: the value of ProgramLoop::source.
  TensorId tensor = kNoTensor;
  /// The value is stored in memory with room for `capacity` elements along `dim`. Its strides are
  /// those of the whole memory.
  struct Room {
    int dim = 0;
    int64_t capacity = 0;
    bool operator==(const Room&) const = default;
  };
  std::optional<Room> room;
  /// Strides in elements of an input or output in the caller's memory. Empty: as `order` and `room`
  /// imply.
  Dims strides = {};
  /// The class in Graph::shape_classes; kUnknownClass if the value is no tensor of the graph.
  int shape_class = kUnknownClass;
  static constexpr int kUnknownClass = -1;
  /// The value whose memory contains this one; kNoValue: this value has memory of its own. The
  /// other value is the output of the kAppend whose inputs[0] is this value, and has the next
  /// number. This value starts at its element `begin` along Room::dim.
  ValueId lies_in = kNoValue;
  int64_t begin = 0;
};

struct Program;
struct Repeat;

/// What a LoopOp::kRepeat does: passes of a body, one after the other. The op's inputs are the
/// number of passes (if `counted`) and whether there is a first pass (if `conditional`), as in
/// core/op/repeat.h; then one input for each of `operands`.
struct ProgramLoop {
  /// How an operand reaches the body; as Repeat::Port.
  enum class Port : uint8_t { kWhole, kCarried, kElement, kElementFromEnd };
  /// An input or weight of the body. It is a weight if it is known before the first run.
  struct Operand {
    Port port = Port::kWhole;
    ValueId leaf = kNoValue;
    int input = -1;  // position among the inputs of `source`
  };
  std::shared_ptr<const Program> body;
  int64_t most = 0;          // passes at most
  bool must_end = false;     // a run that would make more passes fails
  bool counted = false;      // the op has an input with the number of passes
  bool conditional = false;  // the op has an input: whether there is a first pass
  std::vector<Operand> operands;
  /// Input of the body that holds the number of the pass (i64 scalar); kNoValue: the body does not
  /// use it.
  ValueId pass = kNoValue;
  /// The loop of the model that `body` was made from. Null if no model has it (the steps of a
  /// recurrence).
  std::shared_ptr<const Repeat> source = nullptr;
  /// For each stacked output of the body (those behind the condition and the carried values): true
  /// if the last pass writes the first element.
  std::vector<bool> from_end;

  /// Type of result `number` (LoopOp::result); nullopt if there is no such result.
  std::optional<TensorType> ResultType(int64_t number) const;
  /// Number of inputs of the op before those of `operands`.
  size_t first_operand() const { return (counted ? 1U : 0U) + (conditional ? 1U : 0U); }
  /// Passes assumed by estimates: `most`, or 1 if a run determines the number.
  int64_t counted_passes() const { return counted || conditional ? 1 : most; }
  /// Number of operands that are carried from pass to pass.
  size_t carried() const;
};

struct LoopOp {
  enum Kind : uint8_t {
    kLoop,         // runs `body`
    kReinterpret,  // the input's elements in row-major order under the output's shape; no
                   // arithmetic, no copy
    kAppend,       // inputs[0] behind inputs[1] along Room::dim, in one piece of memory
    kRepeat,  // runs `loop`; the output (a bool scalar) only marks the end, nothing is stored in it
    kResult,  // result number `result` of the repeat whose output is inputs[0], in the order of the
              // outputs of a Repeat call
    kOpaque,  // the op named `label` with `attrs` (core/op/indexed/opaque.h); inputs and output are
              // dense and row-major; always a kernel of its own
  };
  /// True if no kernel is needed for the output: it shares memory with inputs[0], or the op that
  /// writes inputs[0] also writes it.
  bool IsAlias() const { return kind != kLoop && kind != kRepeat && kind != kOpaque; }

  Kind kind = kLoop;
  /// Primitive op type ("MatMul", "Exp", "Copy").
  std::string label;
  /// The graph node that the op came from.
  NodeId origin = kNoNode;
  /// For ops of a loop body of a model: number of the step that they came from, counted from 1
  /// without the constants. 0: no step.
  int step = 0;
  LoopBody body;
  std::vector<ValueId> inputs;
  ValueId output = 0;
  std::shared_ptr<const ProgramLoop> loop;  // kRepeat
  std::shared_ptr<const AttrMap> attrs;     // kOpaque
  int result = 0;                           // kResult
};

/// A graph as loop ops only: composites are decomposed, views are index maps, scalar constants are
/// inside the expressions. The SMG is built from it. Immutable once built; ops are in topological
/// order; safe to read from any thread.
struct Program {
  std::vector<Value> values;
  std::vector<LoopOp> ops;
  std::vector<ValueId> inputs;   // by graph input
  std::vector<ValueId> weights;  // by first use
  std::vector<ValueId> outputs;  // by graph output; may repeat
  /// Dims may differ at run time. Values that depend on shapes alone are then not known before a
  /// run.
  bool open_dims = false;

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  const LoopOp& op(LoopId id) const { return ops[static_cast<size_t>(id)]; }
};

struct ProgramOptions {
  /// Views (reshape, transpose, slice, expand ...) become index maps of their readers. Off (for the
  /// evaluator): every view is an op of its own, and no memory is shared.
  bool absorb_views = true;
  /// Arithmetic on 16-bit floats is done in f32, with casts (core/graph/program/half_precision.h).
  /// Off: as in the model.
  bool widen_halves = true;
  /// For a plan with open dims: sets Program::open_dims; the steps of a recurrence become a repeat
  /// even if they are few. Off: a short recurrence is unrolled (core/op/forms/recurrent.h).
  bool open_dims = false;
  /// Limit for the primitive ops of all nodes, copies of views included.
  int64_t loop_op_limit = kMaxGraphLoopOps;
  /// Limit for the bytes of constants that decompositions add.
  int64_t step_constant_byte_limit = kMaxGraphStepConstantBytes;
};

/// Converts a graph of static shapes to loop ops. Errors name the node. Unimplemented if a dim is
/// symbolic; ResourceExhausted beyond a limit of ProgramOptions; InvalidArgument, naming input and
/// output, if a shared buffer is impossible (core/graph/program/shared_rows.h).
absl::StatusOr<Program> BuildProgram(const Graph& graph, const ProgramOptions& options = {});

/// OK if the program can be planned: ops are in order, each reads values of the types that its body
/// expects, and every result of a repeat has a value. Else Internal, naming the value and what was
/// expected. For code that rewrites programs; BuildProgram and ParseProgram return only valid ones.
absl::Status Verify(const Program& program);

/// For each value: whether it is known before the first run. These are weights, constants and
/// values computed from them. Excluded are outputs of the program (each run computes them), results
/// of repeats, values whose shape may differ between runs (open dims), and everything computed from
/// those.
std::vector<bool> KnownBeforeRuns(const Program& program);

/// True if input `read` is read at the same coordinates at which the op writes, without guards, and
/// both shapes are equal.
bool ReadsInPlace(const Program& program, const LoopOp& op, int read);

/// Strides of a value in memory, in elements.
Dims StorageStrides(const Value& value);
/// Elements from the first to behind the last one in memory, gaps included.
int64_t StorageElements(const Value& value);

/// Text of a kRepeat op and its body, without the values that it reads: "repeat 8 (carried %0,
/// whole %1) stacks [forward] program {...}".
std::string LoopToString(const LoopOp& op);

/// Text form of a program, one loop op a line:
///
///   program {
///     %0 = input 0 : f32[8,2]
///     %1 = weight 0 : f32[2,4]
///     %2 = MatMul @3 : f32[8,4] = for m:8 n:4 k:2 [m, n] = sum(%0[m, k], %1[k, n]) : mul(in0, in1)
///     output %2
///   }
std::string ToString(const Program& program);
/// Inverse of ToString; errors name what was expected. The result satisfies Verify.
absl::StatusOr<Program> ParseProgram(std::string_view text);

/// The ops in `ops` (ascending) as a program of their own. Values from outside become inputs, in
/// order of first use; scalar constants stay constants unless the op reads them from memory. No
/// outputs are declared. (*values)[i] is set to the value of `program` that became value i.
Program ExtractProgram(const Program& program, const std::vector<LoopId>& ops,
                       std::vector<ValueId>* values);

}  // namespace fusion
