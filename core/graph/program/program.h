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
  /// Storage order: order[0] is the outermost dim in memory. Empty: row-major as the dims stand.
  std::vector<int> order;
  /// The graph tensor this is (kNoTensor inside a composite); in a body that ProgramLoop::source
  /// is, the value of that.
  TensorId tensor = kNoTensor;
  /// In memory that has room for `capacity` elements along `dim`; strides are those of the whole.
  struct Room {
    int dim = 0;
    int64_t capacity = 0;
    bool operator==(const Room&) const = default;
  };
  std::optional<Room> room;
  /// Of an input or output in the caller's memory, in elements; empty: as `order` and `room` say.
  Dims strides = {};
  /// Of Graph::shape_classes; kUnknownClass where it is none of the graph's tensors.
  int shape_class = kUnknownClass;
  static constexpr int kUnknownClass = -1;
  /// Lies in the memory of the value right behind it, which appends it, from its element `begin`
  /// along Room::dim on. kNoValue: in memory of its own.
  ValueId lies_in = kNoValue;
  int64_t begin = 0;
};

struct Program;
struct Repeat;

/// What a LoopOp::kRepeat does: passes of a body, one after the other. Its inputs are, where they
/// are asked for, the number of passes and whether there is a first one, as of core/op/repeat.h;
/// then one for each of `operands`.
struct ProgramLoop {
  enum class Port : uint8_t { kWhole, kCarried, kElement, kElementFromEnd };
  /// An input or weight of the body: a weight where it is known before the first run.
  struct Operand {
    Port port = Port::kWhole;
    ValueId leaf = kNoValue;
    int input = -1;  // of `source`
  };
  std::shared_ptr<const Program> body;
  int64_t most = 0;       // passes at most
  bool must_end = false;  // a run that would make more passes fails
  bool counted = false;
  bool conditional = false;
  std::vector<Operand> operands;
  ValueId pass = kNoValue;  // i64 scalar input of the body: which pass it is; kNoValue: not asked
  /// What a model says that `body` is made from. Null: no model does, as of the steps of a
  /// recurrence.
  std::shared_ptr<const Repeat> source = nullptr;
  /// By output of the body behind the condition and what is carried: the last pass's is the first
  /// element.
  std::vector<bool> from_end;

  /// Of the result with this number; nullopt: there is none.
  std::optional<TensorType> ResultType(int64_t number) const;
  /// Inputs of the op before those of `operands`.
  size_t first_operand() const { return (counted ? 1U : 0U) + (conditional ? 1U : 0U); }
  /// Passes that estimates count: `most`, or one if a run decides how many are made.
  int64_t counted_passes() const { return counted || conditional ? 1 : most; }
  size_t carried() const;
};

struct LoopOp {
  enum Kind : uint8_t {
    kLoop,         // `body`
    kReinterpret,  // the input's elements in row-major order under the output's shape; no
                   // arithmetic, no copy
    kAppend,       // inputs[0] behind inputs[1] along Room::dim, where they lie in one piece of
                   // memory
    kRepeat,       // `loop`; the output says that it is over, and holds nothing
    kResult,       // of the repeat whose output is inputs[0]: number `result`, in the order of
                   // what a Repeat gives
    kOpaque,  // what the op named `label` does with `attrs` (core/op/indexed/opaque.h), on inputs
              // that lie dense and row-major, as the output does; a kernel of its own
  };
  /// Nothing computes the output: it lies in the memory of inputs[0], or the other way round, or
  /// who writes inputs[0] writes it.
  bool IsAlias() const { return kind != kLoop && kind != kRepeat && kind != kOpaque; }

  Kind kind = kLoop;
  /// Primitive op type ("MatMul", "Exp", "Copy").
  std::string label;
  /// The graph node it came from.
  NodeId origin = kNoNode;
  /// Of ops of a body that a model has: which step of it they came from, from 1 on, constants not
  /// counted. 0: of none.
  int step = 0;
  LoopBody body;
  std::vector<ValueId> inputs;
  ValueId output = 0;
  std::shared_ptr<const ProgramLoop> loop;  // kRepeat
  std::shared_ptr<const AttrMap> attrs;     // kOpaque
  int result = 0;                           // kResult
};

/// A graph as loop ops only: composites taken apart, views turned into index maps, scalar constants
/// inside the expressions. What the SMG is built from. Immutable; ops in topological order; safe to
/// read from any thread.
struct Program {
  std::vector<Value> values;
  std::vector<LoopOp> ops;
  std::vector<ValueId> inputs;   // by graph input
  std::vector<ValueId> weights;  // by first use
  std::vector<ValueId> outputs;  // by graph output; may repeat
  /// Dims may be others in a run: what follows from shapes alone is not known before it.
  bool open_dims = false;

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  const LoopOp& op(LoopId id) const { return ops[static_cast<size_t>(id)]; }
};

struct ProgramOptions {
  /// Views (reshape, transpose, slice, expand ...) become index maps of their readers. Off: every
  /// view is an op of its own, as the evaluator wants it, and no memory is shared.
  bool absorb_views = true;
  /// Arithmetic on 16-bit floats is done in f32, with casts (core/graph/program/half_precision.h).
  /// Off: as the model says it.
  bool widen_halves = true;
  /// For a plan that leaves dims open: Program::open_dims, and the steps of a recurrence are a
  /// repeat of the program however few they are. Off: a short one is written out
  /// (core/op/forms/recurrent.h).
  bool open_dims = false;
  /// Primitive ops and copies of views, all nodes together.
  int64_t loop_op_limit = kMaxGraphLoopOps;
  /// Bytes of the constants of their steps.
  int64_t step_constant_byte_limit = kMaxGraphStepConstantBytes;
};

/// Takes a graph of static shapes apart. Errors name the node: Unimplemented where a symbolic dim
/// is left, ResourceExhausted beyond a limit of ProgramOptions; InvalidArgument, naming input and
/// output, for a shared buffer that none can be (core/graph/program/shared_rows.h).
absl::StatusOr<Program> BuildProgram(const Graph& graph, const ProgramOptions& options = {});

/// OK if a program may be planned: ops in order, each on values of the types that its body reads, a
/// value for every result of a repeat. For what rewrites programs; BuildProgram and ParseProgram
/// give no others. Internal, saying which value and what was expected.
absl::Status Verify(const Program& program);

/// By value whether it is known before the first run: weights, constants, and what is made from
/// them. Not what the program returns, which every run computes, nor what is made from that.
std::vector<bool> KnownBeforeRuns(const Program& program);

/// True if an op reads input `read` element by element where it writes its result.
bool ReadsInPlace(const Program& program, const LoopOp& op, int read);

/// Strides in elements of a value as it is stored.
Dims StorageStrides(const Value& value);
/// Elements from its first to behind its last, those between its rows included.
int64_t StorageElements(const Value& value);

/// What a repeat is, its body included, whatever it reads: "repeat 8 (carried %0, whole %1) stacks
/// [forward] program {...}".
std::string LoopToString(const LoopOp& op);

/// Text form of a program, one loop op a line:
///
///   program {
///     %0 = input 0 : f32[128,768]
///     %1 = weight 0 : f32[768,768]
///     %2 = MatMul @3 : f32[128,768] = for m:128 n:768 k:768 [m, n] = sum %0[m, k], %1[k, n] :
///     mul(in0, in1) output %2
///   }
std::string ToString(const Program& program);
absl::StatusOr<Program> ParseProgram(std::string_view text);

/// The ops in `ops` (ascending) as a program of their own: values from outside become inputs
/// (scalar constants stay), in order of first use. No outputs are declared. `values` receives, for
/// each value of the result, the value it was.
Program ExtractProgram(const Program& program, const std::vector<LoopId>& ops,
                       std::vector<ValueId>* values);

}  // namespace fusion
