#include "core/graph/evaluate.h"

#include <algorithm>
#include <optional>

#include "core/graph/evaluate_loop.h"
#include "core/graph/program_builder.h"

namespace fusion {
namespace {

bool IsEmptyBox(const Box& box) {
  for (size_t d = 0; d < box.begin.size(); ++d) {
    if (box.begin[d] >= box.end[d]) return true;
  }
  return false;
}

// The smallest box around both.
Box Around(const Box& a, const Box& b) {
  if (IsEmptyBox(a)) return b;
  if (IsEmptyBox(b)) return a;
  Box out = a;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    out.begin[d] = std::min(a.begin[d], b.begin[d]);
    out.end[d] = std::max(a.end[d], b.end[d]);
  }
  return out;
}

// Calls visit(source offset, target offset, run length) for the rows of `box` inside a row-major
// tensor of `extents`, and of a row-major tensor of the box's own extents.
template <typename Visit>
void ForRows(const Box& box, const Dims& extents, Visit visit) {
  Dims shape = box.Extents();
  int64_t elements = NumElements(shape);
  if (elements == 0) return;
  Dims strides = RowMajorStrides(extents);
  int64_t row = shape.empty() ? 1 : shape.back();
  Dims at = box.begin;
  for (int64_t done = 0; done < elements; done += row) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    visit(offset, done, row);
    for (size_t d = at.size(); d-- > 0;) {
      if (d + 1 == at.size()) continue;
      if (++at[d] < box.end[d]) break;
      at[d] = box.begin[d];
    }
  }
}

EvaluatedValue LoadBox(const HostTensor& tensor, const Box& box) {
  EvaluatedValue out;
  out.dtype = tensor.dtype();
  out.box = box;
  auto elements = static_cast<size_t>(NumElements(box.Extents()));
  bool real = IsFloat(tensor.dtype());
  if (real) {
    out.reals.resize(elements);
  } else {
    out.integers.resize(elements);
  }
  const bool f32 = tensor.dtype() == DType::kF32;
  ForRows(box, tensor.dims(), [&](int64_t from, int64_t to, int64_t n) {
    if (f32) {
      const float* src = tensor.data<float>().data() + from;
      double* dst = out.reals.data() + to;
      for (int64_t i = 0; i < n; ++i) dst[i] = static_cast<double>(src[i]);
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      if (real) {
        out.reals[static_cast<size_t>(to + i)] = tensor.GetDouble(from + i);
      } else {
        out.integers[static_cast<size_t>(to + i)] = tensor.GetInt(from + i);
      }
    }
  });
  return out;
}

HostTensor StoreBox(const EvaluatedValue& value, const Box& box, DType dtype) {
  HostTensor out(dtype, box.Extents());
  Box local = box;
  for (size_t d = 0; d < box.begin.size(); ++d) {
    local.begin[d] -= value.box.begin[d];
    local.end[d] -= value.box.begin[d];
  }
  ForRows(local, value.box.Extents(), [&](int64_t from, int64_t to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (IsFloat(dtype)) {
        out.SetDouble(to + i, value.reals[static_cast<size_t>(from + i)]);
      } else {
        out.SetInt(to + i, value.integers[static_cast<size_t>(from + i)]);
      }
    }
  });
  return out;
}

void RoundAll(DType dtype, EvaluatedValue* value) {
  if (dtype == DType::kF64) return;
  for (double& v : value->reals) v = RoundTo(dtype, v);
}

// Parts of one tensor, the second behind the first along `dim`.
EvaluatedValue Appended(const EvaluatedValue& first, const EvaluatedValue& second, size_t dim,
                        const Box& whole) {
  EvaluatedValue out{.dtype = first.dtype, .box = whole};
  out.reals.resize(first.reals.size() + second.reals.size());
  out.integers.resize(first.integers.size() + second.integers.size());
  const int64_t border = first.box.Extents()[dim];
  auto put = [&](const EvaluatedValue& part, Box at) {
    ForRows(at, whole.Extents(), [&](int64_t to, int64_t from, int64_t n) {
      if (IsFloat(out.dtype)) {
        std::copy_n(part.reals.data() + from, n, out.reals.data() + to);
      } else {
        std::copy_n(part.integers.data() + from, n, out.integers.data() + to);
      }
    });
  };
  Box at = whole;
  at.end[dim] = border;
  put(first, at);
  at.begin[dim] = border;
  at.end[dim] = whole.end[dim];
  put(second, at);
  return out;
}

// For every value the box that must be known, by walking from the outputs backwards.
std::vector<Box> NeededBoxes(const Program& program, const std::vector<Box>& boxes) {
  std::vector<Box> needed(program.values.size());
  for (size_t i = 0; i < program.values.size(); ++i) {
    auto rank = static_cast<size_t>(program.values[i].type.shape.rank());
    needed[i] = {Dims(rank, 0), Dims(rank, 0)};
  }
  std::vector<bool> wanted(program.values.size(), false);
  auto want = [&](ValueId id, const Box& box) {
    auto i = static_cast<size_t>(id);
    needed[i] = wanted[i] ? Around(needed[i], box) : box;
    wanted[i] = true;
  };
  for (size_t i = 0; i < boxes.size(); ++i) want(program.outputs[i], boxes[i]);
  for (size_t o = program.ops.size(); o-- > 0;) {
    const LoopOp& op = program.ops[o];
    auto out = static_cast<size_t>(op.output);
    if (!wanted[out]) continue;
    if (op.IsAlias()) {
      needed[out] = Box::Whole(program.values[out].type.shape.ToDims());
      for (ValueId in : op.inputs) want(in, Box::Whole(program.value(in).type.shape.ToDims()));
      continue;
    }
    needed[out] = ComputedBox(op.body, needed[out]);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      want(op.inputs[i], NeededBox(op.body, static_cast<int>(i),
                                   program.value(op.inputs[i]).type.shape.ToDims(), needed[out]));
    }
  }
  return needed;
}

std::vector<LoopId> LastUses(const Program& program) {
  std::vector<LoopId> last(program.values.size(), kNoLoop);
  for (size_t o = 0; o < program.ops.size(); ++o) {
    for (ValueId id : program.ops[o].inputs) last[static_cast<size_t>(id)] = static_cast<LoopId>(o);
  }
  for (ValueId id : program.outputs) {
    last[static_cast<size_t>(id)] = static_cast<LoopId>(program.ops.size());
  }
  return last;
}

// Values are held as double or int64, each from its first use to its last.
absl::Status CheckMemory(const Program& program, const std::vector<Box>& needed,
                         const std::vector<LoopId>& last) {
  auto bytes = [&](ValueId id) {
    return 8 * static_cast<double>(NumElements(needed[static_cast<size_t>(id)].Extents()));
  };
  std::vector<bool> held(program.values.size(), false);
  double live = 0;
  for (size_t o = 0; o < program.ops.size(); ++o) {
    const LoopOp& op = program.ops[o];
    auto hold = [&](ValueId id) {
      if (!held[static_cast<size_t>(id)]) live += bytes(id);
      held[static_cast<size_t>(id)] = true;
    };
    for (ValueId id : op.inputs) hold(id);
    hold(op.output);
    if (live > static_cast<double>(MachineMemoryBytes())) {
      return ResourceExhausted(op.label, ": evaluating takes ",
                               HumanBytes(static_cast<int64_t>(live)),
                               ", more than this machine's memory");
    }
    for (ValueId id : op.inputs) {
      auto i = static_cast<size_t>(id);
      if (last[i] == static_cast<LoopId>(o) && held[i]) {
        live -= bytes(id);
        held[i] = false;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

Dims Box::Extents() const {
  Dims out;
  for (size_t d = 0; d < begin.size(); ++d) out.push_back(std::max<int64_t>(end[d] - begin[d], 0));
  return out;
}

absl::StatusOr<std::vector<HostTensor>> EvaluateBoxes(
    const Program& program, const std::vector<Box>& boxes,
    const std::function<const HostTensor*(ValueId)>& value, const EvaluateOptions& options) {
  FUSION_CHECK(boxes.size() == program.outputs.size(), "one box per output");
  std::vector<Box> needed = NeededBoxes(program, boxes);
  std::vector<LoopId> last = LastUses(program);
  RETURN_IF_ERROR(CheckMemory(program, needed, last));
  std::vector<std::optional<EvaluatedValue>> held(program.values.size());
  auto fetch = [&](ValueId id) -> const EvaluatedValue* {
    auto i = static_cast<size_t>(id);
    const Value& v = program.values[i];
    if (!held[i]) {
      const HostTensor* tensor = v.kind == TensorKind::kConstant ? v.value.get() : value(id);
      if (tensor == nullptr || tensor->dtype() != v.type.dtype ||
          Shape(tensor->dims()) != v.type.shape) {
        return nullptr;
      }
      held[i] = LoadBox(*tensor, needed[i]);
    }
    return &*held[i];
  };
  std::vector<bool> used(program.values.size(), false);
  for (ValueId id : program.outputs) used[static_cast<size_t>(id)] = true;
  for (size_t o = program.ops.size(); o-- > 0;) {
    if (!used[static_cast<size_t>(program.ops[o].output)]) continue;
    for (ValueId id : program.ops[o].inputs) used[static_cast<size_t>(id)] = true;
  }
  for (size_t o = 0; o < program.ops.size(); ++o) {
    const LoopOp& op = program.ops[o];
    if (!used[static_cast<size_t>(op.output)]) continue;
    if (options.cancel != nullptr) RETURN_IF_ERROR(options.cancel->Check());
    std::vector<const EvaluatedValue*> inputs;
    for (ValueId id : op.inputs) {
      const EvaluatedValue* in = fetch(id);
      if (in == nullptr) {
        return InvalidArgument("no value of type ", program.value(id).type.ToString(),
                               " is given for value %", id);
      }
      inputs.push_back(in);
    }
    EvaluatedValue out;
    out.box = needed[static_cast<size_t>(op.output)];
    if (op.kind == LoopOp::kReinterpret) {
      out = *inputs[0];
      out.box = needed[static_cast<size_t>(op.output)];
    } else if (op.kind == LoopOp::kAppend) {
      const auto dim = static_cast<size_t>(program.value(op.output).room->dim);
      out = Appended(*inputs[1], *inputs[0], dim, out.box);
    } else {
      absl::Status status = EvaluateLoop(op.body, inputs, options.threads, &out);
      if (!status.ok()) return Annotate(status, op.label);
    }
    const Value& declared = program.value(op.output);
    if (declared.tensor != kNoTensor) RoundAll(declared.type.dtype, &out);
    held[static_cast<size_t>(op.output)] = std::move(out);
    for (ValueId id : op.inputs) {
      if (last[static_cast<size_t>(id)] == static_cast<LoopId>(o))
        held[static_cast<size_t>(id)].reset();
    }
  }
  std::vector<HostTensor> results;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const EvaluatedValue* out = fetch(program.outputs[i]);
    if (out == nullptr) return InvalidArgument("no value is given for output ", i);
    results.push_back(StoreBox(*out, boxes[i], program.value(program.outputs[i]).type.dtype));
  }
  return results;
}

absl::StatusOr<std::vector<HostTensor>> Evaluate(
    const Graph& graph, const std::vector<HostTensor>& inputs,
    const std::function<absl::StatusOr<const HostTensor*>(TensorId)>& weight,
    const EvaluateOptions& options) {
  if (inputs.size() != graph.inputs().size()) {
    return InvalidArgument("got ", inputs.size(), " inputs, the graph has ", graph.inputs().size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& declared = graph.tensor(graph.inputs()[i]);
    TensorType given{inputs[i].dtype(), Shape(inputs[i].dims())};
    if (given != declared.type) {
      return InvalidArgument("input ", Quote(declared.name), " is ", given.ToString(),
                             ", expected ", declared.type.ToString());
    }
  }
  ASSIGN_OR_RETURN(Program program,
                   BuildProgram(graph, {.absorb_views = false, .widen_halves = false}));
  std::vector<const HostTensor*> weights;
  for (ValueId id : program.weights) {
    const Tensor& declared = graph.tensor(program.value(id).tensor);
    ASSIGN_OR_RETURN(const HostTensor* bytes, weight(program.value(id).tensor));
    TensorType given{bytes->dtype(), Shape(bytes->dims())};
    if (given != declared.type) {
      return InvalidArgument("weight ", Quote(declared.name), " is ", given.ToString(),
                             ", expected ", declared.type.ToString());
    }
    weights.push_back(bytes);
  }
  std::vector<Box> boxes;
  for (ValueId id : program.outputs) {
    boxes.push_back(Box::Whole(program.value(id).type.shape.ToDims()));
  }
  auto value = [&](ValueId id) -> const HostTensor* {
    const Value& v = program.value(id);
    auto index = static_cast<size_t>(v.index);
    if (v.kind == TensorKind::kInput) return &inputs[index];
    if (v.kind == TensorKind::kWeight) return weights[index];
    return nullptr;
  };
  ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, EvaluateBoxes(program, boxes, value, options));
  RETURN_IF_ERROR(CutOutputs(graph.output_extents(), &outputs));
  return outputs;
}

absl::StatusOr<std::vector<HostTensor>> EvaluateCall(const OpCall& call,
                                                     const std::vector<const HostTensor*>& inputs,
                                                     double* budget) {
  ProgramBuilder builder({.absorb_views = false, .widen_halves = false});
  double cost = 0;
  std::vector<ProgramBuilder::Handle> handles;
  for (const HostTensor* tensor : inputs) {
    ProgramBuilder::Handle handle;
    if (tensor != nullptr) {
      handle.base =
          builder.AddValue({.type = {tensor->dtype(), Shape(tensor->dims())},
                            .kind = TensorKind::kConstant,
                            .value = {std::shared_ptr<const void>(), tensor},  // not owned
                            .order = {}});
      cost += static_cast<double>(tensor->elements());
    }
    handles.push_back(std::move(handle));
  }
  ASSIGN_OR_RETURN(auto outputs, builder.AddCall(call, handles, kNoNode));
  std::vector<Box> boxes;
  for (const ProgramBuilder::Handle& handle : outputs) {
    builder.program().outputs.push_back(handle.base);
    boxes.push_back(Box::Whole(builder.program().value(handle.base).type.shape.ToDims()));
  }
  Program program = std::move(builder).Finish();
  if (budget != nullptr) {
    cost += EvaluationPoints(program, boxes);
    if (cost > *budget) return ResourceExhausted("evaluating takes ", cost, " steps");
    *budget -= cost;
  }
  return EvaluateBoxes(program, boxes, [](ValueId) -> const HostTensor* { return nullptr; });
}

double EvaluationPoints(const Program& program, const std::vector<Box>& boxes) {
  std::vector<Box> needed = NeededBoxes(program, boxes);
  double points = 0;
  for (const LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kLoop) continue;
    double here =
        static_cast<double>(NumElements(needed[static_cast<size_t>(op.output)].Extents()));
    if (op.body.reduce) {
      for (int axis : op.body.ReducedAxes()) {
        here *= static_cast<double>(op.body.axes[static_cast<size_t>(axis)].extent.value());
      }
    }
    points += here;
  }
  return points;
}

}  // namespace fusion
