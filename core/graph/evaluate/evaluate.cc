#include "core/graph/evaluate/evaluate.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/graph/evaluate/boxes.h"
#include "core/graph/evaluate/evaluate_loop.h"
#include "core/graph/evaluate/evaluate_opaque.h"
#include "core/graph/program/program_builder.h"
#include "core/op/indexed/opaque.h"
#include "core/op/repeat.h"
#include "core/tensor/passes.h"

namespace fusion {
namespace {

// Where places follow from the order of what is given, or from a choice among it, every number of
// it decides.
void NoteOrders(const LoopOp& op, const std::vector<const EvaluatedValue*>& inputs,
                DecisionLog* log) {
  if (op.label != RowOrder::kName && op.label != BoxChoice::kName) return;
  for (const EvaluatedValue* input : inputs) {
    for (double number : input->reals) log->Add(ShapeDecision::Keeps::kNumber, number);
    for (int64_t number : input->integers) {
      log->Add(ShapeDecision::Keeps::kNumber, static_cast<double>(number));
    }
  }
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
    if (op.kind != LoopOp::kLoop) {
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

// Gives the part of a value that no op of a program computes; nullopt: there is none of its type.
using Load = std::function<std::optional<EvaluatedValue>(ValueId, const Box&)>;

// One evaluation of a program.
class ProgramEvaluator {
 public:
  ProgramEvaluator(const Program& program, const Load& load, const EvaluateOptions& options)
      : program_(program), load_(load), options_(options), held_(program.values.size()) {}

  // The outputs, each with at least the elements of its box.
  absl::StatusOr<std::vector<EvaluatedValue>> Run(const std::vector<Box>& boxes) {
    FUSION_CHECK(boxes.size() == program_.outputs.size(), "one box per output");
    needed_ = NeededBoxes(program_, boxes);
    const std::vector<LoopId> last = LastUses(program_);
    RETURN_IF_ERROR(CheckMemory(program_, needed_, last));
    const std::vector<bool> used = Used();
    for (size_t o = 0; o < program_.ops.size(); ++o) {
      const LoopOp& op = program_.ops[o];
      if (!used[static_cast<size_t>(op.output)]) continue;
      if (options_.cancel != nullptr) RETURN_IF_ERROR(options_.cancel->Check());
      RETURN_IF_ERROR(Compute(op));
      for (ValueId id : op.inputs) {
        if (last[static_cast<size_t>(id)] != static_cast<LoopId>(o)) continue;
        held_[static_cast<size_t>(id)].reset();
        results_.erase(id);
      }
    }
    std::vector<EvaluatedValue> outputs;
    for (size_t i = 0; i < boxes.size(); ++i) {
      const EvaluatedValue* out = Fetch(program_.outputs[i]);
      if (out == nullptr) return InvalidArgument("no value is given for output ", i);
      outputs.push_back(*out);
    }
    return outputs;
  }

 private:
  std::vector<bool> Used() const {
    std::vector<bool> used(program_.values.size(), false);
    for (ValueId id : program_.outputs) used[static_cast<size_t>(id)] = true;
    for (size_t o = program_.ops.size(); o-- > 0;) {
      if (!used[static_cast<size_t>(program_.ops[o].output)]) continue;
      for (ValueId id : program_.ops[o].inputs) used[static_cast<size_t>(id)] = true;
    }
    return used;
  }

  const EvaluatedValue* Fetch(ValueId id) {
    auto i = static_cast<size_t>(id);
    if (!held_[i]) {
      const Value& v = program_.values[i];
      held_[i] =
          v.kind == TensorKind::kConstant ? LoadBox(*v.value, needed_[i]) : load_(id, needed_[i]);
    }
    return held_[i] ? &*held_[i] : nullptr;
  }

  absl::Status Compute(const LoopOp& op) {
    std::vector<const EvaluatedValue*> inputs;
    for (ValueId id : op.inputs) {
      const EvaluatedValue* in = Fetch(id);
      if (in == nullptr) {
        return InvalidArgument("no value of type ", program_.value(id).type.ToString(),
                               " is given for value %", id);
      }
      inputs.push_back(in);
    }
    EvaluatedValue out;
    out.box = needed_[static_cast<size_t>(op.output)];
    switch (op.kind) {
      case LoopOp::kReinterpret:
        out = *inputs[0];
        out.box = needed_[static_cast<size_t>(op.output)];
        break;
      case LoopOp::kAppend:
        out = Appended(*inputs[1], *inputs[0],
                       static_cast<size_t>(program_.value(op.output).room->dim), out.box);
        break;
      case LoopOp::kRepeat: {
        ASSIGN_OR_RETURN(results_[op.output], Repeat(*op.loop, inputs));
        out = WholeValue(program_.value(op.output).type);
        break;
      }
      case LoopOp::kOpaque:
        if (NumElements(program_.value(op.output).type.shape.ToDims()) == 0) {
          out = WholeValue(program_.value(op.output).type);
          break;
        }
        // What decides an order or a choice is a decision.
        if (options_.decisions != nullptr) NoteOrders(op, inputs, options_.decisions);
        RETURN_IF_ERROR(EvaluateOpaque(op, inputs, program_.value(op.output).type, &out));
        break;
      case LoopOp::kResult:
        out = results_.at(op.inputs[0])[static_cast<size_t>(op.result)];
        break;
      case LoopOp::kLoop: {
        absl::Status status =
            EvaluateLoop(op.body, inputs, options_.threads, &out, options_.decisions);
        if (!status.ok()) return Annotate(status, op.label);
        break;
      }
    }
    const Value& declared = program_.value(op.output);
    if (declared.tensor != kNoTensor) RoundAll(declared.type.dtype, &out);
    held_[static_cast<size_t>(op.output)] = std::move(out);
    return absl::OkStatus();
  }

  // Passes one after the other; what one hands to the next is rounded as memory holds it.
  absl::StatusOr<std::vector<EvaluatedValue>> Repeat(
      const ProgramLoop& loop, const std::vector<const EvaluatedValue*>& inputs) const {
    const Program& body = *loop.body;
    const int64_t most =
        loop.counted ? std::clamp<int64_t>(inputs[0]->integers[0], 0, loop.most) : loop.most;
    bool goes_on = !loop.conditional || inputs[loop.counted ? 1 : 0]->integers[0] != 0;
    const size_t conditions = loop.conditional ? 1 : 0;
    std::vector<EvaluatedValue> results;
    for (size_t i = 0; i < loop.operands.size(); ++i) {
      if (loop.operands[i].port != ProgramLoop::Port::kCarried) continue;
      results.push_back(*inputs[loop.first_operand() + i]);
    }
    const size_t carried = results.size();
    std::vector<Box> boxes;
    for (size_t i = 0; i < body.outputs.size(); ++i) {
      const TensorType& type = body.value(body.outputs[i]).type;
      boxes.push_back(Box::Whole(type.shape.ToDims()));
      if (i < conditions + carried) continue;
      results.push_back(WholeValue(StackedType(type, loop.most)));
    }
    const bool more = loop.must_end && (!loop.counted || inputs[0]->integers[0] > loop.most);
    if (more && !loop.conditional) return MorePasses(loop.most);
    // Passes that give no element need not be made.
    const bool nothing = std::all_of(
        boxes.begin(), boxes.end(), [](const Box& box) { return NumElements(box.Extents()) == 0; });
    int64_t pass = nothing ? most : 0;
    for (; pass < most && goes_on; ++pass) {
      auto load = [&](ValueId id, const Box& box) {
        return Leaf(loop, inputs, results, pass, id, box);
      };
      ASSIGN_OR_RETURN(std::vector<EvaluatedValue> outputs,
                       ProgramEvaluator(body, load, options_).Run(boxes));
      for (EvaluatedValue& out : outputs) RoundAll(out.dtype, &out);
      if (conditions > 0) goes_on = outputs[0].integers[0] != 0;
      for (size_t i = conditions; i < outputs.size(); ++i) {
        const size_t result = i - conditions;
        if (result < carried) {
          results[result] = std::move(outputs[i]);
          continue;
        }
        const bool from_end = loop.from_end[result - carried];
        const int64_t at = from_end ? loop.most - 1 - pass : pass;
        const auto reals = static_cast<std::ptrdiff_t>(outputs[i].reals.size());
        const auto integers = static_cast<std::ptrdiff_t>(outputs[i].integers.size());
        std::copy(outputs[i].reals.begin(), outputs[i].reals.end(),
                  results[result].reals.begin() + at * reals);
        std::copy(outputs[i].integers.begin(), outputs[i].integers.end(),
                  results[result].integers.begin() + at * integers);
      }
    }
    if (more && goes_on) return MorePasses(loop.most);
    EvaluatedValue made = WholeValue({DType::kI64, Shape()});
    made.integers[0] = pass;
    results.push_back(std::move(made));  // where nobody asks for it, nobody reads it
    return results;
  }

  // What the body of a loop reads at a pass.
  static std::optional<EvaluatedValue> Leaf(const ProgramLoop& loop,
                                            const std::vector<const EvaluatedValue*>& inputs,
                                            const std::vector<EvaluatedValue>& results,
                                            int64_t pass, ValueId id, const Box& box) {
    if (id == loop.pass) {
      EvaluatedValue number = WholeValue({DType::kI64, Shape()});
      number.integers[0] = pass;
      return number;
    }
    size_t carried = 0;
    for (size_t i = 0; i < loop.operands.size(); ++i) {
      const ProgramLoop::Operand& operand = loop.operands[i];
      const EvaluatedValue& given = *inputs[loop.first_operand() + i];
      const bool is_carried = operand.port == ProgramLoop::Port::kCarried;
      if (operand.leaf != id) {
        carried += is_carried ? 1 : 0;
        continue;
      }
      if (is_carried) return CutBox(results[carried], box);
      if (operand.port == ProgramLoop::Port::kWhole) return CutBox(given, box);
      const int64_t at = operand.port == ProgramLoop::Port::kElement ? pass : loop.most - 1 - pass;
      Box one = box;
      one.begin.insert(one.begin.begin(), at);
      one.end.insert(one.end.begin(), at + 1);
      EvaluatedValue element = CutBox(given, one);
      element.box = box;
      return element;
    }
    return std::nullopt;
  }

  const Program& program_;
  const Load& load_;
  const EvaluateOptions& options_;
  std::vector<Box> needed_;
  std::vector<std::optional<EvaluatedValue>> held_;
  std::map<ValueId, std::vector<EvaluatedValue>> results_;  // by what says that a repeat is over
};

}  // namespace

absl::StatusOr<std::vector<HostTensor>> EvaluateBoxes(
    const Program& program, const std::vector<Box>& boxes,
    const std::function<const HostTensor*(ValueId)>& value, const EvaluateOptions& options) {
  auto load = [&](ValueId id, const Box& box) -> std::optional<EvaluatedValue> {
    const Value& v = program.value(id);
    const HostTensor* tensor = value(id);
    if (tensor == nullptr || tensor->dtype() != v.type.dtype ||
        Shape(tensor->dims()) != v.type.shape) {
      return std::nullopt;
    }
    return LoadBox(*tensor, box);
  };
  ASSIGN_OR_RETURN(std::vector<EvaluatedValue> outputs,
                   ProgramEvaluator(program, load, options).Run(boxes));
  std::vector<HostTensor> results;
  for (size_t i = 0; i < boxes.size(); ++i) {
    results.push_back(StoreBox(outputs[i], boxes[i], program.value(program.outputs[i]).type.dtype));
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
                                                     double* budget,
                                                     const EvaluateOptions& options) {
  ProgramBuilder builder({.absorb_views = false, .widen_halves = false});
  double cost = 0;
  std::vector<ProgramBuilder::Handle> handles;
  for (const HostTensor* tensor : inputs) {
    ProgramBuilder::Handle handle;
    if (tensor != nullptr) {
      TensorType type{tensor->dtype(), Shape(tensor->dims())};
      // Constants go into expressions, which are simplified: nothing would be left to decide.
      handle.base = options.decisions != nullptr
                        ? builder.AddInput(std::move(type), kNoTensor)
                        : builder.AddValue({.type = std::move(type),
                                            .kind = TensorKind::kConstant,
                                            .value = {std::shared_ptr<const void>(), tensor},
                                            .order = {}});  // not owned
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
  const Program program = std::move(builder).Finish();
  std::vector<const HostTensor*> operands;  // by input of the program
  for (const HostTensor* tensor : inputs) {
    if (tensor != nullptr) operands.push_back(tensor);
  }
  if (budget != nullptr) {
    cost += EvaluationPoints(program, boxes);
    if (cost > *budget) return ResourceExhausted("evaluating takes ", cost, " steps");
    *budget -= cost;
  }
  auto value = [&](ValueId v) -> const HostTensor* {
    return operands[static_cast<size_t>(program.value(v).index)];
  };
  return EvaluateBoxes(program, boxes, value, options);
}

double EvaluationPoints(const Program& program, const std::vector<Box>& boxes) {
  std::vector<Box> needed = NeededBoxes(program, boxes);
  double points = 0;
  for (const LoopOp& op : program.ops) {
    if (op.kind == LoopOp::kRepeat) {
      std::vector<Box> whole;
      for (ValueId id : op.loop->body->outputs) {
        whole.push_back(Box::Whole(op.loop->body->value(id).type.shape.ToDims()));
      }
      // Every pass is an evaluation of its own, which loads what it reads.
      constexpr double kPointsOfOp = 1024;
      const Program& body = *op.loop->body;
      double pass = kPointsOfOp * static_cast<double>(1 + body.ops.size());
      for (const Value& value : body.values) {
        if (value.kind == TensorKind::kIntermediate) continue;
        pass += static_cast<double>(NumElements(value.type.shape.ToDims()));
      }
      points += static_cast<double>(op.loop->most) * (pass + EvaluationPoints(body, whole));
    }
    if (op.kind == LoopOp::kOpaque) {
      std::vector<Dims> inputs;
      for (ValueId in : op.inputs) inputs.push_back(program.value(in).type.shape.ToDims());
      points += OpaquePoints(op, inputs);
    }
    if (op.kind != LoopOp::kLoop) continue;
    points += PointsOf(op.body, needed[static_cast<size_t>(op.output)]);
  }
  return points;
}

}  // namespace fusion
