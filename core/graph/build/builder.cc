#include "core/graph/build/builder.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/hash.h"
#include "core/base/threads/job.h"
#include "core/graph/counted.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/op/derive.h"

namespace fusion {
namespace {

// Of one op whose outputs have as many elements as its values say.
constexpr double kCountedFoldPoints = 0x1p24;
// Decisions of one node that are told one by one. Shape arithmetic has few elements.
constexpr size_t kMostNodeDecisions = 1 << 12;

// A number that differs, in all likelihood, where the bytes of the constants differ.
double Fingerprint(const std::vector<const HostTensor*>& values) {
  std::string digests;
  for (const HostTensor* value : values) {
    if (value != nullptr) digests += Sha256(value->byte_view()).ToHex();
  }
  const std::string hex = Sha256(digests).ToHex().substr(0, 12);  // 48 bits: exact in a double
  return static_cast<double>(std::strtoull(hex.c_str(), nullptr, 16));
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name, BuilderOptions options) : options_(options) {
  graph_.name_ = std::move(name);
}

GraphBuilder GraphBuilder::Within(std::string name) const {
  GraphBuilder inner(std::move(name), options_);
  inner.count_ = count_;
  return inner;
}

void GraphBuilder::Settle(const GraphBuilder& inner) {
  options_.fold_total_bytes = inner.options_.fold_total_bytes;
  options_.fold_total_points = inner.options_.fold_total_points;
}

SymbolId GraphBuilder::AddSymbol(SymbolDecl symbol) {
  graph_.symbols_.push_back(std::move(symbol));
  return static_cast<SymbolId>(graph_.symbols_.size()) - 1;
}

TensorId GraphBuilder::AddTensor(Tensor tensor) {
  Job::Step();
  if (tensor.type.shape.is_static()) {
    auto elements = CheckedNumElements(tensor.type.shape.ToDims(), DTypeBytes(tensor.type.dtype));
    if (elements.ok()) bytes_ += static_cast<double>(*elements * DTypeBytes(tensor.type.dtype));
  }
  if (too_large_.ok()) {
    too_large_ = Annotate(CheckTensorSize(tensor.type), StrCat("tensor ", Quote(tensor.name)));
  }
  graph_.tensors_.push_back(std::move(tensor));
  return static_cast<TensorId>(graph_.tensors_.size()) - 1;
}

TensorId GraphBuilder::AddInput(std::string name, TensorType type) {
  TensorId id = AddTensor(
      {.name = std::move(name), .type = std::move(type), .kind = TensorKind::kInput, .value = {}});
  graph_.inputs_.push_back(id);
  return id;
}

TensorId GraphBuilder::AddWeight(std::string name, TensorType type) {
  return AddTensor({.name = std::move(name),
                    .type = std::move(type),
                    .kind = TensorKind::kWeight,
                    .value = {},
                    .client_has_bytes = true});
}

TensorId GraphBuilder::AddConstant(std::string name, HostTensor value, bool client_has_bytes) {
  TensorType type{value.dtype(), Shape(value.dims())};
  return AddTensor({.name = std::move(name),
                    .type = std::move(type),
                    .kind = TensorKind::kConstant,
                    .value = std::make_shared<const HostTensor>(std::move(value)),
                    .client_has_bytes = client_has_bytes});
}

absl::StatusOr<TensorId> GraphBuilder::AddNode(std::string_view op, std::vector<TensorId> inputs,
                                               AttrMap attrs, std::string name,
                                               std::string output_name) {
  const OpDef* def = FindOp(op);
  if (def == nullptr) {
    return Unimplemented(
        DescribeNode(name, op),
        ": this op is not supported; fusionctl capabilities --ops lists those that are");
  }
  ASSIGN_OR_RETURN(std::vector<TensorId> outputs,
                   AddMultiNode(*def, std::move(inputs), std::move(attrs), std::move(name),
                                {std::move(output_name)}));
  return outputs[0];
}

bool GraphBuilder::CanFold(const OpDef& def, const std::vector<TensorId>& inputs,
                           const std::vector<TensorType>& outputs,
                           const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    if (options_.unfolded != nullptr && options_.unfolded->contains(name)) return false;
  }
  int64_t bytes = 0;
  for (const TensorType& type : outputs) {
    if (!type.shape.is_static()) return false;
    auto elements = CheckedNumElements(type.shape.ToDims(), DTypeBytes(type.dtype));
    if (!elements.ok() || *elements > options_.fold_limit_bytes) return false;
    bytes += *elements * DTypeBytes(type.dtype);
  }
  if (bytes > std::min(options_.fold_limit_bytes, options_.fold_total_bytes)) return false;
  if (def.value_of_types) return true;
  for (TensorId id : inputs) {
    if (id != kNoTensor && graph_.tensor(id).kind != TensorKind::kConstant) return false;
  }
  return true;
}

absl::StatusOr<std::vector<HostTensor>> GraphBuilder::Fold(const OpDef& def, const OpCall& call,
                                                           const std::vector<TensorId>& inputs,
                                                           DecisionLog* log) {
  if (def.value_of_types) {
    ASSIGN_OR_RETURN(HostTensor value, def.value_of_types(call));
    std::vector<HostTensor> values;
    values.push_back(std::move(value));
    return values;
  }
  std::vector<const HostTensor*> values;
  for (TensorId id : inputs) {
    values.push_back(id == kNoTensor ? nullptr : graph_.tensor(id).value.get());
  }
  const std::vector<OpDef::Counted> counted =
      def.counted ? def.counted(call) : std::vector<OpDef::Counted>();
  const EvaluateOptions evaluate = {.decisions = log};
  if (counted.empty()) return EvaluateCall(call, values, &options_.fold_total_points, evaluate);
  // Some of these compare all elements with all others.
  double budget = std::min(options_.fold_total_points, kCountedFoldPoints);
  const double before = budget;
  ASSIGN_OR_RETURN(std::vector<HostTensor> out, EvaluateCall(call, values, &budget, evaluate));
  options_.fold_total_points -= before - budget;
  std::vector<OutputExtent> extents;
  for (const OpDef::Counted& c : counted) {
    extents.push_back({c.output, c.dim, call.outputs() - 1});
  }
  HostTensor count = out.back();
  RETURN_IF_ERROR(CutOutputs(extents, &out));
  out.push_back(std::move(count));
  return out;
}

absl::StatusOr<std::vector<std::optional<CountedDim>>> GraphBuilder::CountsOf(
    const OpCall& call, const std::vector<TensorId>& inputs) const {
  std::vector<std::optional<CountedDim>> counts;
  for (TensorId id : inputs) {
    counts.push_back(id == kNoTensor ? std::nullopt : graph_.tensor(id).counted);
  }
  return InheritCounts(call, counts);
}

absl::StatusOr<std::vector<TensorType>> GraphBuilder::TypesOf(const OpCall& call) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferOutputTypes(call, &count_));
  if (count_.loop_ops > options_.loop_op_limit) {
    return ResourceExhausted("the nodes so far are taken apart into ", count_.loop_ops,
                             " primitive ops; ", options_.loop_op_limit, " are allowed");
  }
  if (count_.constant_bytes > options_.step_constant_byte_limit) {
    return ResourceExhausted("the nodes so far are taken apart into ", "steps with ",
                             count_.constant_bytes, " bytes of constants; ",
                             options_.step_constant_byte_limit, " are allowed");
  }
  for (const TensorType& type : types) RETURN_IF_ERROR(CheckTensorSize(type));
  return types;
}

absl::StatusOr<std::vector<TensorId>> GraphBuilder::AddMultiNode(
    const OpDef& def, std::vector<TensorId> inputs, AttrMap attrs, std::string name,
    std::vector<std::string> output_names) {
  while (!inputs.empty() && inputs.back() == kNoTensor) inputs.pop_back();
  if (def.counted && output_names.size() > static_cast<size_t>(def.max_outputs)) {
    return InvalidArgument(DescribeNode(name, def.name), ": has ", output_names.size(),
                           " outputs, expected at most ", def.max_outputs);
  }
  if (def.counted && !def.outputs) output_names.resize(static_cast<size_t>(def.max_outputs));
  std::vector<std::optional<TensorType>> types;
  for (TensorId id : inputs) {
    types.push_back(id == kNoTensor ? std::nullopt : std::optional(graph_.tensor(id).type));
  }
  OpCall call(def, std::move(types), attrs, static_cast<int>(output_names.size()));
  auto inferred = TypesOf(call);
  if (!inferred.ok()) return Annotate(inferred.status(), DescribeNode(name, def.name));

  auto counts = CountsOf(call, inputs);
  if (!counts.ok()) return Annotate(counts.status(), DescribeNode(name, def.name));

  std::vector<TensorId> outputs;
  DecisionLog log(kMostNodeDecisions);
  DecisionLog* const decisions = options_.trace != nullptr ? &log : nullptr;
  if (decisions != nullptr && def.decisions) def.decisions(call, decisions);
  if (options_.fold_limit_bytes > 0 && CanFold(def, inputs, *inferred, output_names)) {
    auto values = Fold(def, call, inputs, decisions);
    if (log.over()) log = OfConstants(inputs);
    bool too_expensive = absl::IsResourceExhausted(values.status());
    if (!values.ok() && !too_expensive) {
      return Annotate(values.status(), DescribeNode(name, def.name));
    }
    for (size_t i = 0; !too_expensive && i < values->size(); ++i) {
      options_.fold_total_bytes -= (*values)[i].byte_size();
      if (options_.folded != nullptr && !output_names[i].empty()) {
        (*options_.folded)[output_names[i]] = (*values)[i].dims();
      }
      outputs.push_back(AddConstant(output_names[i], std::move((*values)[i])));
    }
    if (!too_expensive) {
      Trace(name, def.name, log);
      return outputs;
    }
  }
  Trace(name, def.name, log);
  auto node_id = static_cast<NodeId>(graph_.nodes_.size());
  for (size_t i = 0; i < inferred->size(); ++i) {
    outputs.push_back(AddTensor({.name = output_names[i],
                                 .type = (*inferred)[i],
                                 .kind = TensorKind::kIntermediate,
                                 .value = {},
                                 .producer = node_id,
                                 .counted = (*counts)[i]}));
  }
  if (def.counted) {
    for (const OpDef::Counted& c : def.counted(call)) {
      graph_.tensors_[static_cast<size_t>(outputs[static_cast<size_t>(c.output)])].counted = {
          c.dim, outputs.back()};
    }
  }
  graph_.nodes_.push_back({.name = std::move(name),
                           .def = &def,
                           .inputs = std::move(inputs),
                           .outputs = outputs,
                           .attrs = std::move(attrs)});
  return outputs;
}

// What stands for decisions that are too many to be told one by one: the constants themselves.
DecisionLog GraphBuilder::OfConstants(const std::vector<TensorId>& inputs) const {
  std::vector<const HostTensor*> values;
  for (TensorId id : inputs) {
    values.push_back(id == kNoTensor ? nullptr : graph_.tensor(id).value.get());
  }
  DecisionLog log(1);
  log.Add(ShapeDecision::Keeps::kNumber, Fingerprint(values));
  return log;
}

void GraphBuilder::Trace(std::string_view node, std::string_view op, const DecisionLog& log) {
  if (options_.trace == nullptr || log.decisions().empty()) return;
  options_.trace->push_back({std::string(node), std::string(op), log.decisions()});
}

void GraphBuilder::MarkOutput(TensorId id) { graph_.outputs_.push_back(id); }

absl::Status GraphBuilder::ShareBuffer(const SharedBuffer& shared) {
  const auto input = static_cast<size_t>(shared.input);
  const auto output = static_cast<size_t>(shared.output);
  if (input >= graph_.inputs_.size() || output >= graph_.outputs_.size()) {
    return InvalidArgument("input ", shared.input, " or output ", shared.output, " is not there");
  }
  for (const SharedBuffer& other : graph_.shared_buffers_) {
    if (other.input == shared.input) return InvalidArgument("the input is shared already");
    if (other.output == shared.output) return InvalidArgument("the output is shared already");
  }
  for (const BoundStrides& bound : graph_.bound_strides_) {
    if (bound.position != (bound.output ? shared.output : shared.input)) continue;
    return InvalidArgument("the ", bound.output ? "output" : "input", " has strides of its own");
  }
  const TensorType& in = graph_.tensor(graph_.inputs_[input]).type;
  const TensorType& out = graph_.tensor(graph_.outputs_[output]).type;
  bool fits = in.dtype == out.dtype && in.shape.rank() == out.shape.rank() && shared.dim >= 0 &&
              shared.dim < in.shape.rank() && shared.capacity > 0;
  for (int d = 0; fits && d < in.shape.rank(); ++d) {
    fits = d == shared.dim || in.shape.dim(d) == out.shape.dim(d);
  }
  if (!fits) {
    return InvalidArgument("the input is ", in.ToString(), ", the output ", out.ToString(),
                           "; expected equal types but for one dim");
  }
  if (in.shape.is_static()) {
    const Dims room = WithCapacity(shared, in.shape.ToDims());
    RETURN_IF_ERROR(CheckTensorSize({in.dtype, Shape(room)}));
  }
  graph_.shared_buffers_.push_back(shared);
  return absl::OkStatus();
}

absl::Status GraphBuilder::BindStrides(const BoundStrides& bound) {
  const std::vector<TensorId>& list = bound.output ? graph_.outputs_ : graph_.inputs_;
  const std::string_view kind = bound.output ? "output" : "input";
  const auto position = static_cast<size_t>(bound.position);
  if (position >= list.size()) return InvalidArgument(kind, " ", bound.position, " is not there");
  for (const BoundStrides& other : graph_.bound_strides_) {
    if (other.output == bound.output && other.position == bound.position) {
      return InvalidArgument("the ", kind, " has strides already");
    }
  }
  for (const SharedBuffer& shared : graph_.shared_buffers_) {
    if ((bound.output ? shared.output : shared.input) != bound.position) continue;
    return InvalidArgument("the ", kind, " lies in a shared buffer, which says its strides");
  }
  const TensorType& type = graph_.tensor(list[position]).type;
  if (type.shape.is_static()) {
    RETURN_IF_ERROR(CheckBoundStrides(type.shape.ToDims(), bound.strides, DTypeBytes(type.dtype)));
  } else if (static_cast<int>(bound.strides.size()) != type.shape.rank()) {
    return InvalidArgument(bound.strides.size(), " strides; expected ", type.shape.rank(),
                           ", one for each dim");
  }
  graph_.bound_strides_.push_back(bound);
  return absl::OkStatus();
}

// Where the outputs are those of a graph that was built before, the counts are among them.
void GraphBuilder::AddCounts() {
  std::vector<TensorId>& outputs = graph_.outputs_;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::optional<CountedDim>& counted = graph_.tensor(outputs[i]).counted;
    if (!counted) continue;
    auto at = std::find(outputs.begin(), outputs.end(), counted->count) - outputs.begin();
    if (static_cast<size_t>(at) == outputs.size()) outputs.push_back(counted->count);
    graph_.output_extents_.push_back({static_cast<int>(i), counted->dim, static_cast<int>(at)});
  }
}

Graph GraphBuilder::WithShapeClasses(Graph graph, std::vector<int> classes) {
  FUSION_CHECK(classes.size() == graph.tensors_.size(), "a class for each tensor");
  graph.shape_classes_ = std::move(classes);
  return graph;
}

absl::StatusOr<Graph> GraphBuilder::Build() {
  if (graph_.outputs_.empty()) return InvalidArgument("the graph has no output");
  AddCounts();
  RETURN_IF_ERROR(too_large_);
  if (bytes_ > static_cast<double>(kMaxTensorBytes)) {
    return InvalidArgument("the tensors of the graph have ", static_cast<int64_t>(bytes_),
                           " bytes together, expected at most ", kMaxTensorBytes);
  }
  Graph out = std::move(graph_);
  graph_ = Graph();
  return out;
}

}  // namespace fusion
