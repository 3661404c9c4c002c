#include "core/graph/program/program.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/threads/job.h"
#include "core/graph/program/program_builder.h"
#include "core/graph/program/shared_rows.h"

namespace fusion {
namespace {

// Whether a dim of the output is none of an input: how long it is then follows from shapes alone.
bool IsSpread(const LoopOp& op) {
  if (op.kind != LoopOp::kLoop) return false;
  for (size_t axis = 0; axis < op.body.axes.size(); ++axis) {
    const Dim& extent = op.body.axes[axis].extent;
    if (extent.is_static() && extent.value() <= 1) continue;
    const auto a = static_cast<int>(axis);
    auto uses = [&](const IndexExpr& e) { return e.CoefficientOf(a) != 0; };
    // Where an input is read along some of it only, as by a Concat, it is as long as they are.
    auto guards = [&](const Guard& guard) { return guard.axis == a; };
    auto reads = [&](const Read& read) {
      return std::any_of(read.index.begin(), read.index.end(), uses) ||
             std::any_of(read.guards.begin(), read.guards.end(), guards);
    };
    if (std::none_of(op.body.reads.begin(), op.body.reads.end(), reads)) return true;
  }
  return false;
}

}  // namespace

std::vector<bool> KnownBeforeRuns(const Program& program) {
  std::vector<bool> returned(program.values.size(), false);
  for (ValueId v : program.outputs) returned[static_cast<size_t>(v)] = true;
  std::vector<bool> known(program.values.size(), false);
  for (size_t v = 0; v < known.size(); ++v) {
    const Value& value = program.values[v];
    returned[v] = returned[v] || value.lies_in != kNoValue;
    known[v] =
        !returned[v] && (value.kind == TensorKind::kWeight || value.kind == TensorKind::kConstant);
  }
  for (const LoopOp& op : program.ops) {
    const auto output = static_cast<size_t>(op.output);
    // What has other dims in other runs is made by each of them. Of what no tensor of the graph
    // says that, what is spread may.
    const int shape_class = program.value(op.output).shape_class;
    const bool open = program.open_dims && (shape_class > 0 || (shape_class < 0 && IsSpread(op)));
    // No loop runs before the first run.
    known[output] = !returned[output] && op.kind != LoopOp::kRepeat && !open;
    for (ValueId in : op.inputs) known[output] = known[output] && known[static_cast<size_t>(in)];
  }
  return known;
}

bool ReadsInPlace(const Program& program, const LoopOp& op, int read) {
  const auto r = static_cast<size_t>(read);
  return op.body.reads[r].guards.empty() && op.body.reads[r].index == op.body.write &&
         program.value(op.inputs[r]).type.shape == program.value(op.output).type.shape;
}

Dims StorageStrides(const Value& value) {
  if (!value.strides.empty()) return value.strides;
  Dims dims = value.type.shape.ToDims();
  if (value.room) dims[static_cast<size_t>(value.room->dim)] = value.room->capacity;
  if (value.order.empty()) return RowMajorStrides(dims);
  Dims ordered;
  for (int d : value.order) ordered.push_back(dims[static_cast<size_t>(d)]);
  Dims inner = RowMajorStrides(ordered);
  Dims strides(dims.size());
  for (size_t i = 0; i < ordered.size(); ++i) {
    strides[static_cast<size_t>(value.order[i])] = inner[i];
  }
  return strides;
}

int64_t StorageElements(const Value& value) {
  return SpanOf(value.type.shape.ToDims(), StorageStrides(value));
}

Program ExtractProgram(const Program& program, const std::vector<LoopId>& ops,
                       std::vector<ValueId>* values) {
  Program out;
  std::unordered_map<ValueId, ValueId> moved;
  values->clear();
  auto move = [&](ValueId id, TensorKind kind) {
    Value value = program.value(id);
    value.kind = kind;
    value.producer = kNoLoop;
    value.lies_in = kNoValue;
    value.begin = 0;
    if (kind != TensorKind::kConstant) value.value = nullptr;
    auto to = static_cast<ValueId>(out.values.size());
    if (kind == TensorKind::kInput) {
      value.index = static_cast<int>(out.inputs.size());
      out.inputs.push_back(to);
    }
    out.values.push_back(std::move(value));
    values->push_back(id);
    moved[id] = to;
    return to;
  };
  for (LoopId id : ops) {
    LoopOp op = program.op(id);
    // Such a body reads its scalar constants from memory, see NormaliseInputs; so does what is
    // opaque.
    const bool in_memory = op.kind == LoopOp::kOpaque || ReadsAtInputs(op.body);
    for (ValueId& input : op.inputs) {
      auto it = moved.find(input);
      if (it != moved.end()) {
        input = it->second;
        continue;
      }
      const Value& from = program.value(input);
      bool scalar = !in_memory && IsScalarConstant(from);
      input = move(input, scalar ? TensorKind::kConstant : TensorKind::kInput);
    }
    op.output = move(op.output, TensorKind::kIntermediate);
    out.values[static_cast<size_t>(op.output)].producer = static_cast<LoopId>(out.ops.size());
    out.ops.push_back(std::move(op));
  }
  return out;
}

absl::StatusOr<Program> BuildProgram(const Graph& graph, const ProgramOptions& options) {
  ProgramBuilder builder(options);
  std::vector<ProgramBuilder::Handle> handles(graph.tensors().size());
  std::vector<bool> known(graph.tensors().size(), false);
  auto shape_class = [&](TensorId id) {
    const std::vector<int>& classes = graph.shape_classes();
    return classes.empty() ? Value::kUnknownClass : classes[static_cast<size_t>(id)];
  };
  auto leaf = [&](TensorId id) {
    const Tensor& t = graph.tensor(id);
    const ValueId v =
        t.kind == TensorKind::kInput ? builder.AddInput(t.type, id)
        : t.kind == TensorKind::kWeight
            ? builder.AddWeight(t.type, id)
            : builder.AddValue(
                  {.type = t.type, .kind = t.kind, .value = t.value, .order = {}, .tensor = id});
    handles[static_cast<size_t>(id)] = {
        .base = v, .view = {}, .origin = kNoNode, .shape_class = shape_class(id)};
    builder.Classify(v, shape_class(id));
    known[static_cast<size_t>(id)] = true;
  };
  for (TensorId id : graph.inputs()) leaf(id);
  for (NodeId n = 0; n < static_cast<NodeId>(graph.nodes().size()); ++n) {
    const Node& node = graph.node(n);
    const AtNode at(n, node.def->name);
    std::vector<ProgramBuilder::Handle> inputs;
    for (TensorId id : node.inputs) {
      if (id == kNoTensor) {
        inputs.emplace_back();
        continue;
      }
      if (!graph.tensor(id).type.shape.is_static()) {
        return Unimplemented(graph.Describe(n), ": input shape ",
                             graph.tensor(id).type.shape.ToString(),
                             " is symbolic; bind its dims to plan this graph");
      }
      if (!known[static_cast<size_t>(id)]) leaf(id);
      inputs.push_back(handles[static_cast<size_t>(id)]);
    }
    auto outputs = builder.AddCall(graph.Call(n), inputs, n);
    if (!outputs.ok()) return Annotate(outputs.status(), graph.Describe(n));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      auto id = static_cast<size_t>(node.outputs[i]);
      handles[id] = std::move((*outputs)[i]);
      handles[id].shape_class = shape_class(node.outputs[i]);
      known[id] = true;
      builder.Name(handles[id], node.outputs[i]);
    }
  }
  for (TensorId id : graph.outputs()) {
    if (!known[static_cast<size_t>(id)]) leaf(id);
    builder.AddOutput(&handles[static_cast<size_t>(id)]);
    builder.Name(handles[static_cast<size_t>(id)], id);
  }
  RETURN_IF_ERROR(builder.CheckLimits());
  Program program = std::move(builder).Finish();
  SettleWeights(&program);
  if (options.absorb_views) RETURN_IF_ERROR(ShareRows(graph, &program));
  return program;
}

}  // namespace fusion
