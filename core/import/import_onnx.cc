#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <variant>

#include "core/base/job.h"
#include "core/import/control_flow.h"
#include "core/import/declared_types.h"
#include "core/import/dropout.h"
#include "core/import/flatten.h"
#include "core/import/flex_attention.h"
#include "core/import/followed_passes.h"
#include "core/import/import.h"
#include "core/import/normalise.h"
#include "core/import/old_broadcast.h"
#include "core/import/onnx_attributes.h"
#include "core/import/sequences.h"
#include "core/import/shared_names.h"
#include "core/import/topological_order.h"
#include "core/onnx/constant_node.h"
#include "core/onnx/group_calls.h"
#include "core/op/random_numbers.h"

namespace fusion {
namespace {

constexpr size_t kMaxBodyPrefix = 512;
// Of names that passes of loops make.
constexpr int64_t kMaxNameBytes = int64_t{1} << 27;

/// One import: from the flattened model to the graph, node by node.
class OnnxImporter {
 public:
  OnnxImporter(const onnx::ModelProto& model, const ImportOptions& options)
      : graph_(model.graph()),
        model_(model),
        options_(options),
        rule_(model.graph(), options.inline_limit_bytes),
        symbols_(options.dim_bindings, options.ranged_dims),
        main_builder_(
            model.graph().name(),
            {.unfolded = options.unfolded, .folded = options.folded, .trace = options.trace}) {}

  absl::StatusOr<Graph> Run() {
    absl::StatusOr<Graph> graph = Import();
    if (!graph.ok()) return symbols_.InModelWords(graph.status());
    return graph;
  }

 private:
  absl::StatusOr<Graph> Import() {
    ASSIGN_OR_RETURN(main_.flat, FlattenModel(model_));
    main_.graph = &graph_;
    main_.ids.assign(main_.flat.values.size(), kNoTensor);
    RETURN_IF_ERROR(ReadTypes());
    RETURN_IF_ERROR(AddInputs());
    RETURN_IF_ERROR(FindWanted());
    RETURN_IF_ERROR(main_.SetOrder());
    RETURN_IF_ERROR(AddNodes());
    for (ValueRef value : main_.wanted) {
      ASSIGN_OR_RETURN(TensorId id, TensorOf(value));
      RETURN_IF_ERROR(CheckType(value, id));
      builder_->MarkOutput(id);
    }
    RETURN_IF_ERROR(ShareByName(options_.shared_buffers, builder_));
    RETURN_IF_ERROR(BindByName(options_.bound_strides, builder_));
    return builder_->Build();
  }

  // A graph whose nodes are being added: the model's, or a body of a node.
  struct Body {
    const onnx::GraphProto* graph = nullptr;
    FlatModel flat;
    std::vector<ValueRef> wanted;
    std::vector<int> order;
    std::vector<bool> used;     // by value: read by a node that matters, or an output
    std::vector<TensorId> ids;  // by value
    // The same, of initialisers and Constant nodes only: every pass has the same ones.
    std::vector<TensorId> constants;
    int64_t constants_of = 0;  // the number of the graph that they are in
    std::string prefix;        // of the names of nodes and tensors
    // Those that are no tensors.
    std::unordered_map<ValueRef, Collection> collections;

    absl::Status SetOrder() {
      ASSIGN_OR_RETURN(order, TopologicalOrder(flat, wanted));
      used.assign(flat.values.size(), false);
      for (ValueRef ref : wanted) used[static_cast<size_t>(ref)] = true;
      for (int index : order) {
        for (ValueRef ref : flat.nodes[static_cast<size_t>(index)].inputs) {
          if (ref != kNoValueRef) used[static_cast<size_t>(ref)] = true;
        }
      }
      return absl::OkStatus();
    }
  };

  const FlatValue& value(ValueRef ref) const {
    return body_->flat.values[static_cast<size_t>(ref)];
  }

  absl::Status AddNodes() {
    for (int index : body_->order) {
      RETURN_IF_ERROR(CountNode());
      RETURN_IF_ERROR(AddNode(body_->flat.nodes[static_cast<size_t>(index)]));
    }
    return absl::OkStatus();
  }

  absl::Status CountNode() {
    if (++added_ <= kMaxImportedNodes) return absl::OkStatus();
    return ResourceExhausted("the model has more than ", kMaxImportedNodes,
                             " nodes after its loops are written out");
  }

  // Copies of long collections are work that adds no node.
  static void CountElements(const Collection& collection) {
    constexpr size_t kElementsOfAStep = 16;
    Job::Step(1 + static_cast<int64_t>(collection.elements.size() / kElementsOfAStep));
  }

  // The flattened body of a node of the current one; kept for the next time.
  absl::StatusOr<Body*> BodyOf(const FlatNode& node, const onnx::GraphProto& graph) {
    std::unique_ptr<Body>& body = bodies_[{&node, &graph}];
    if (body != nullptr) return body.get();
    auto made = std::make_unique<Body>();
    made->graph = &graph;
    ASSIGN_OR_RETURN(made->flat, FlattenBody(body_->flat, node, graph));
    for (const onnx::ValueInfoProto& output : graph.output()) {
      auto ref = made->flat.by_name.find(output.name());
      if (ref == made->flat.by_name.end()) {
        return InvalidArgument("its output ", QuoteShort(output.name()), " is given by nothing");
      }
      made->wanted.push_back(ref->second);
    }
    RETURN_IF_ERROR(made->SetOrder());
    made->constants.assign(made->flat.values.size(), kNoTensor);
    body = std::move(made);
    return body.get();
  }

  // Adds a copy of a body of `node`, whose inputs are `node_inputs`.
  absl::StatusOr<std::vector<Item>> AddBodyOf(const FlatNode& node,
                                              const std::vector<Item>& node_inputs,
                                              const onnx::GraphProto& graph,
                                              const std::vector<Item>& inputs,
                                              const std::string& name) {
    if (body_depth_ == kMaxBodyDepth) {
      return ResourceExhausted("bodies are nested deeper than ", kMaxBodyDepth,
                               ", or a function calls itself from a body");
    }
    // A pass of a body without nodes is no free one either.
    RETURN_IF_ERROR(CountNode());
    ASSIGN_OR_RETURN(Body * inner, BodyOf(node, graph));
    inner->prefix = StrCat(body_->prefix, node.name, "/").substr(0, kMaxBodyPrefix) + name + "/";
    if (inner->constants_of != graph_number_) {
      inner->constants.assign(inner->flat.values.size(), kNoTensor);
      inner->constants_of = graph_number_;
    }
    inner->ids = inner->constants;
    inner->collections.clear();
    const size_t own = node_inputs.size() - node.captured.size();
    auto bind = [&](const std::string& what, const Item& item) {
      auto ref = inner->flat.by_name.find(what);
      bool takes = ref != inner->flat.by_name.end() &&
                   inner->flat.values[static_cast<size_t>(ref->second)].kind == FlatValue::kInput;
      if (!takes) return;
      if (item.collection) {
        CountElements(*item.collection);
        inner->collections[ref->second] = *item.collection;
      } else {
        inner->ids[static_cast<size_t>(ref->second)] = item.tensor;
      }
    };
    for (size_t i = 0; i < node.captured.size(); ++i) bind(node.captured[i], node_inputs[own + i]);
    for (int i = 0; i < graph.input_size() && i < static_cast<int>(inputs.size()); ++i) {
      bind(graph.input(i).name(), inputs[static_cast<size_t>(i)]);
    }
    Body* outer = std::exchange(body_, inner);
    ++body_depth_;
    absl::StatusOr<std::vector<Item>> outputs = AddBodyNodes();
    --body_depth_;
    body_ = outer;
    return outputs;
  }

  absl::StatusOr<std::vector<Item>> AddBodyNodes() {
    RETURN_IF_ERROR(AddNodes());
    return ItemsOf(body_->wanted);
  }

  // A body of `node` as a graph of its own, for a loop that is not written out. What it reads from
  // outside are further inputs, constants and all that is known of them excepted.
  absl::StatusOr<RepeatBody> MakeBodyOf(const FlatNode& node, const std::vector<Item>& node_inputs,
                                        const onnx::GraphProto& graph,
                                        const std::vector<BodyInput>& inputs, Condition condition) {
    GraphBuilder made = builder_->Within(graph.name());
    std::vector<TensorId> given;
    for (const BodyInput& input : inputs) {
      if (const auto* type = std::get_if<TensorType>(&input)) {
        given.push_back(made.AddInput("", *type));
      } else {
        given.push_back(made.AddConstant("", std::get<HostTensor>(input)));
      }
    }
    std::vector<TensorId> captured;
    std::map<TensorId, TensorId> moved;
    std::map<TensorId, TensorId> held;  // constants of the body that are those of the graph around
    auto move = [&](TensorId* id) {
      if (*id == kNoTensor) return absl::OkStatus();
      auto [at, fresh] = moved.try_emplace(*id, kNoTensor);
      const Tensor& outer = builder_->tensor(*id);
      if (fresh && outer.value != nullptr) {
        at->second = made.AddConstant(outer.name, *outer.value, outer.client_has_bytes);
        held[at->second] = *id;
      } else if (fresh) {
        if (outer.counted) {
          return Unimplemented("its body reads ", QuoteShort(outer.name),
                               ", of which a run decides how many elements there are");
        }
        at->second = made.AddInput("", outer.type);
        captured.push_back(*id);
      }
      *id = at->second;
      return absl::OkStatus();
    };
    std::vector<Item> inner = node_inputs;
    for (size_t i = node_inputs.size() - node.captured.size(); i < node_inputs.size(); ++i) {
      RETURN_IF_ERROR(move(&inner[i].tensor));
      if (!inner[i].collection) continue;
      for (TensorId& element : inner[i].collection->elements) RETURN_IF_ERROR(move(&element));
    }
    GraphBuilder* outer = std::exchange(builder_, &made);
    const int64_t number = std::exchange(graph_number_, ++graphs_);
    absl::StatusOr<std::vector<TensorId>> outputs =
        AddTensorBody(AddsBodiesOf(node, inner), graph, given, "body");
    absl::StatusOr<RepeatBody> body =
        outputs.ok() ? BodyWith(*std::move(outputs), condition, node.name, held, &made)
                     : absl::StatusOr<RepeatBody>(outputs.status());
    builder_ = outer;
    graph_number_ = number;
    builder_->Settle(made);
    RETURN_IF_ERROR(body.status());
    body->captured.insert(body->captured.begin(), captured.begin(), captured.end());
    return body;
  }

  static absl::StatusOr<RepeatBody> BodyWith(std::vector<TensorId> outputs, Condition condition,
                                             const std::string& name,
                                             const std::map<TensorId, TensorId>& held,
                                             GraphBuilder* builder) {
    std::optional<bool> goes_on;
    if (condition == Condition::kIgnored && !outputs.empty()) {
      outputs.erase(outputs.begin());
      goes_on = true;
    } else if (condition == Condition::kAsked && !outputs.empty()) {
      const TensorType& type = builder->tensor(outputs[0]).type;
      if (type.dtype != DType::kBool || !type.shape.is_static() ||
          NumElements(type.shape.ToDims()) != 1) {
        return InvalidArgument("output 0 of the body is ", type.ToString(), ", expected one bool");
      }
      if (const HostTensor* known = builder->ConstantValue(outputs[0])) {
        goes_on = known->GetInt(0) != 0;
        outputs.erase(outputs.begin());
      } else if (type.shape.rank() > 0) {
        ASSIGN_OR_RETURN(outputs[0], builder->AddNode("Reshape", {outputs[0]}, {{"shape", Dims{}}},
                                                      StrCat(name, "/goes_on")));
      }
    }
    for (TensorId id : outputs) builder->MarkOutput(id);
    if (outputs.empty()) return InvalidArgument("the body gives nothing that is carried or kept");
    ASSIGN_OR_RETURN(Graph graph, builder->Build());
    ASSIGN_OR_RETURN(RepeatBody body, StepsOf(graph, held));
    body.goes_on = goes_on;
    return body;
  }

  // Inputs first: their dims become the first symbols.
  absl::Status ReadTypes() {
    for (const onnx::ValueInfoProto& input : graph_.input()) {
      auto ref = main_.flat.by_name.find(input.name());
      bool constant = value(ref->second).kind == FlatValue::kInitializer;
      if (constant) {
        RETURN_IF_ERROR(Declare(input, "input "));
        continue;
      }
      ASSIGN_OR_RETURN(InputType type, ReadInputType(input, &symbols_));
      input_refs_.push_back(ref->second);
      input_dtypes_.push_back(type.dtype);
      input_shapes_.push_back(std::move(type.shape));
    }
    for (const onnx::ValueInfoProto& info : graph_.value_info()) {
      absl::Status status = Declare(info, "tensor ");
      // Of a kind we cannot hold: whoever makes it says so, if anyone needs it.
      if (!status.ok() && !absl::IsUnimplemented(status)) return status;
    }
    for (const onnx::ValueInfoProto& output : graph_.output()) {
      RETURN_IF_ERROR(Declare(output, "output "));
    }
    return absl::OkStatus();
  }

  // Notes the declared type of a tensor. What is declared for unknown names does not matter.
  absl::Status Declare(const onnx::ValueInfoProto& info, std::string_view kind) {
    auto ref = main_.flat.by_name.find(info.name());
    if (ref == main_.flat.by_name.end() || !info.has_type()) return absl::OkStatus();
    std::string what = StrCat(kind, QuoteShort(info.name()));
    ASSIGN_OR_RETURN(DeclaredType type, ReadDeclaredType(info.type(), what, &symbols_));
    declared_[ref->second].push_back({std::move(type), std::move(what)});
    return absl::OkStatus();
  }

  absl::Status AddInputs() {
    RETURN_IF_ERROR(symbols_.CheckBindings());
    RETURN_IF_ERROR(symbols_.BindBatch(options_.batch_size, input_shapes_));
    for (size_t i = 0; i < input_refs_.size(); ++i) {
      const std::string& name = value(input_refs_[i]).name;
      std::string what = StrCat("input ", QuoteShort(name));
      auto shape = symbols_.Resolve(input_shapes_[i], builder_);
      if (!shape.ok()) return Annotate(shape.status(), what);
      TensorType type{input_dtypes_[i], *std::move(shape)};
      absl::Status size = CheckTensorSize(type);
      if (!size.ok()) return Annotate(size, what);
      TensorId id = builder_->AddInput(name, std::move(type));
      main_.ids[static_cast<size_t>(input_refs_[i])] = id;
      RETURN_IF_ERROR(CheckType(input_refs_[i], id));
    }
    return absl::OkStatus();
  }

  // Outputs of the graph, then those to keep.
  absl::Status FindWanted() {
    std::unordered_set<ValueRef> seen;
    for (const onnx::ValueInfoProto& output : graph_.output()) {
      auto ref = main_.flat.by_name.find(output.name());
      if (ref == main_.flat.by_name.end() || value(ref->second).kind == FlatValue::kUndefined) {
        return InvalidArgument("output ", QuoteShort(output.name()),
                               " is given by no node, input or initializer");
      }
      if (!seen.insert(ref->second).second) {
        return InvalidArgument("output ", QuoteShort(output.name()), " is declared twice");
      }
      main_.wanted.push_back(ref->second);
    }
    if (main_.wanted.empty()) return InvalidArgument("the graph has no output");
    for (const std::string& name : options_.keep_outputs) {
      auto ref = main_.flat.by_name.find(name);
      if (ref == main_.flat.by_name.end() || value(ref->second).kind != FlatValue::kNode) {
        return InvalidArgument("keep_outputs names ", QuoteShort(name),
                               ", which no node of the graph gives");
      }
      if (seen.insert(ref->second).second) main_.wanted.push_back(ref->second);
    }
    return absl::OkStatus();
  }

  bool IsUsed(ValueRef ref) const {
    return ref != kNoValueRef && body_->used[static_cast<size_t>(ref)];
  }

  // Types that bodies declare are not looked at: their dims may differ from pass to pass.
  absl::Status CheckType(ValueRef ref, TensorId id) const {
    if (body_ != &main_) return absl::OkStatus();
    auto declared = declared_.find(ref);
    if (declared == declared_.end()) return absl::OkStatus();
    const Tensor& tensor = builder_->tensor(id);
    const int counted = tensor.counted ? tensor.counted->dim : -1;
    for (const Declaration& d : declared->second) {
      absl::Status fits = CheckDeclaredType(d.type, tensor.type, counted, symbols_, d.what);
      if (fits.ok()) continue;
      const bool other_dtype = d.type.dtype && *d.type.dtype != tensor.type.dtype;
      if (value(ref).kind != FlatValue::kNode || other_dtype) return fits;
      if (options_.warnings != nullptr) options_.warnings->emplace(Message(fits));
    }
    return absl::OkStatus();
  }

  // The tensor of a value; an initialiser is added when it is first asked for.
  absl::StatusOr<TensorId> TensorOf(ValueRef ref) {
    if (ref == kNoValueRef) return kNoTensor;
    TensorId& id = body_->ids[static_cast<size_t>(ref)];
    if (id == kNoTensor && value(ref).kind == FlatValue::kInitializer) {
      const onnx::TensorProto& tensor = body_->graph->initializer(value(ref).index);
      std::string what = StrCat("initializer ", QuoteShort(tensor.name()));
      ASSIGN_OR_RETURN(id, AddConstant(tensor, tensor.name(), body_ == &main_, what));
      RETURN_IF_ERROR(CheckType(ref, id));
      if (body_ != &main_) body_->constants[static_cast<size_t>(ref)] = id;
    }
    if (auto held = body_->collections.find(ref); held != body_->collections.end()) {
      return Unimplemented("output ", QuoteShort(value(ref).name), " is ", KindOf(held->second),
                           "; only tensors can be outputs");
    }
    if (id == kNoTensor) return Internal("tensor ", QuoteShort(value(ref).name), " is not built");
    return id;
  }

  // `by_name`: the client can give the bytes under this name.
  absl::StatusOr<TensorId> AddConstant(const onnx::TensorProto& tensor, const std::string& name,
                                       bool by_name, std::string_view what) {
    ASSIGN_OR_RETURN(TensorHeader header, ReadTensorHeader(tensor, what));
    if (IsExternal(tensor) && !by_name) {
      return Unimplemented(
          what, ": constants of functions and bodies must have their bytes in the model");
    }
    if (IsExternal(tensor) || (by_name && !rule_.StaysInline(name, header))) {
      return builder_->AddWeight(name, {header.dtype, Shape(header.dims)});
    }
    ASSIGN_OR_RETURN(HostTensor bytes, ReadInlineTensor(tensor, what));
    return builder_->AddConstant(name, std::move(bytes), by_name);
  }

  absl::StatusOr<std::vector<TensorId>> AddConstantNode(const FlatNode& node,
                                                        const std::string& output) {
    std::string what = DescribeNode(node.name, node.op);
    bool in_function = node.attributes != nullptr || body_ != &main_;
    onnx::NodeProto resolved;  // a function's Constant may refer to the function's attributes
    const onnx::NodeProto* proto = node.proto;
    if (in_function) {
      for (const onnx::AttributeProto& written : proto->attribute()) {
        const onnx::AttributeProto* attribute = FindAttribute(node, written.name());
        if (attribute == nullptr) continue;
        onnx::AttributeProto* copy = resolved.add_attribute();
        *copy = *attribute;
        copy->set_name(written.name());
      }
      proto = &resolved;
    }
    if (proto->attribute_size() == 1 && proto->attribute(0).has_t() &&
        proto->attribute(0).name() == "value") {
      ASSIGN_OR_RETURN(TensorId id,
                       AddConstant(proto->attribute(0).t(), output, !in_function, what));
      return std::vector<TensorId>{id};
    }
    ASSIGN_OR_RETURN(onnx::TensorProto tensor, ConstantNodeTensor(*proto, what));
    ASSIGN_OR_RETURN(TensorId id, AddConstant(tensor, output, !in_function, what));
    return std::vector<TensorId>{id};
  }

  // The largest and the smallest of bools are those of bytes that are 0 or 1.
  absl::StatusOr<std::vector<TensorId>> AddNormalNode(NormalNode normal, const std::string& name,
                                                      const std::vector<std::string>& names) {
    const bool extremum = normal.def->name == "ReduceMax" || normal.def->name == "ReduceMin";
    const bool of_bools = extremum && names.size() == 1 && !normal.inputs.empty() &&
                          normal.inputs[0] != kNoTensor &&
                          builder_->tensor(normal.inputs[0]).type.dtype == DType::kBool;
    auto cast = [&](TensorId x, DType type, const std::string& output) {
      return builder_->AddNode("Cast", {x}, {{"to", std::string(DTypeName(type))}}, name, output);
    };
    if (of_bools) {
      ASSIGN_OR_RETURN(normal.inputs[0], cast(normal.inputs[0], DType::kU8, ""));
    }
    auto outputs =
        builder_->AddMultiNode(*normal.def, std::move(normal.inputs), std::move(normal.attrs), name,
                               of_bools ? std::vector<std::string>{""} : names);
    if (!of_bools || !outputs.ok()) return outputs;
    ASSIGN_OR_RETURN(TensorId y, cast((*outputs)[0], DType::kBool, names[0]));
    return std::vector<TensorId>{y};
  }

  // A node that draws numbers and has no seed gets the number of such nodes before it: its numbers
  // are the same at every run.
  void SetSeed(const FlatNode& node, NormalNode* normal) {
    if (!DrawsNumbers(normal->def->name) || normal->attrs.Has("seed")) return;
    normal->attrs.Set("seed", static_cast<double>(unseeded_++));
    if (options_.warnings == nullptr) return;
    options_.warnings->insert(StrCat(
        DescribeNode(node.name, node.op),
        ": has no seed: it gives the same numbers at every run; make them an input of the model if "
        "they must differ"));
  }

  absl::StatusOr<std::vector<TensorId>> AddOperator(const FlatNode& node,
                                                    std::vector<TensorId> inputs,
                                                    std::vector<std::string> names) {
    RETURN_IF_ERROR(AlignOldOperand(node, &inputs, builder_));
    ASSIGN_OR_RETURN(NormalNode normal,
                     NormaliseNode(node, inputs, *builder_, options_.custom_ops));
    if (const auto* body = normal.attrs.Find<std::string>("body"); normal.def->internal && body) {
      custom_bytes_ += static_cast<int64_t>(body->size());
      if (custom_bytes_ > kMaxCustomBytes) {
        return ResourceExhausted(DescribeNode(node.name, node.op),
                                 ": the custom ops of the model "
                                 "have more than ",
                                 kMaxCustomBytes, " bytes when written out");
      }
    }
    SetSeed(node, &normal);
    RETURN_IF_ERROR(
        Annotate(CheckNamedOutputs(*normal.def, names.size()), DescribeNode(node.name, node.op)));
    // Optional outputs that nobody reads are not computed.
    while (!normal.def->outputs && names.size() > 1 && !IsUsed(node.outputs[names.size() - 1])) {
      names.pop_back();
    }
    auto outputs = AddNormalNode(std::move(normal), body_->prefix + node.name, names);
    if (outputs.ok()) return outputs;
    return WithInputs(outputs.status(), inputs);
  }

  // An error of a node, which numbers its inputs: with what the model calls those, and with a way
  // out if dims of theirs are open.
  absl::Status WithInputs(const absl::Status& status, const std::vector<TensorId>& inputs) const {
    constexpr size_t kMostNamed = 4;
    std::vector<TensorType> types;
    std::vector<std::string> named;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kNoTensor) continue;
      const Tensor& tensor = builder_->tensor(inputs[i]);
      types.push_back(tensor.type);
      const bool meant = Message(status).find(StrCat("input ", i)) != std::string_view::npos;
      if (!meant || tensor.name.empty() || named.size() == kMostNamed) continue;
      named.push_back(StrCat("input ", i, " is ", QuoteShort(tensor.name)));
    }
    std::string message(Message(status));
    if (!named.empty()) StrAppend(&message, StrCat("; ", StrJoin(named, ", ")));
    const std::string hint = symbols_.OpenSymbolHint(types);
    if (!hint.empty()) StrAppend(&message, StrCat("; ", hint));
    return absl::Status(status.code(), message);
  }

  AddBody AddsBodiesOf(const FlatNode& node, const std::vector<Item>& inputs) {
    return [this, &node, &inputs](const onnx::GraphProto& graph, const std::vector<Item>& in,
                                  const std::string& name) {
      return AddBodyOf(node, inputs, graph, in, name);
    };
  }

  // Its results under the names that the node gives them.
  absl::Status AddFlow(const FlatNode& node) {
    ASSIGN_OR_RETURN(const std::vector<Item> inputs, ItemsOf(node.inputs));
    ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOf(node));
    Bodies bodies;
    bodies.add = AddsBodiesOf(node, inputs);
    bodies.make = [&](const onnx::GraphProto& graph, const std::vector<BodyInput>& in,
                      Condition condition) {
      return MakeBodyOf(node, inputs, graph, in, condition);
    };
    bodies.count = [this] { return CountNode(); };
    bodies.follow_points = &follow_points_;
    bodies.most_written_out = options_.short_repeats ? 0 : kMostPassesWrittenOut;
    FlatNode named = node;
    named.name = body_->prefix + node.name;
    ASSIGN_OR_RETURN(std::vector<Item> outputs, AddControlFlow(named, inputs, bodies, builder_));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!IsUsed(node.outputs[i])) continue;
      if (i >= outputs.size()) return HasNoOutput(node, i);
      if (!outputs[i].collection) {
        ASSIGN_OR_RETURN(outputs[i].tensor, builder_->AddNode("Identity", {outputs[i].tensor}, {},
                                                              named.name, names[i]));
      }
      RETURN_IF_ERROR(Give(node.outputs[i], std::move(outputs[i])));
    }
    return absl::OkStatus();
  }

  static absl::Status HasNoOutput(const FlatNode& node, size_t output) {
    return InvalidArgument(DescribeNode(node.name, node.op), ": has no output ", output);
  }

  absl::StatusOr<std::vector<TensorId>> AddFlex(const FlatNode& node,
                                                const std::vector<TensorId>& inputs,
                                                const std::string& output) {
    FlatNode named = node;
    named.name = body_->prefix + node.name;
    ASSIGN_OR_RETURN(const std::vector<Item> items, ItemsOf(node.inputs));
    ASSIGN_OR_RETURN(TensorId y,
                     AddFlexAttention(named, inputs, AddsBodiesOf(node, items), output, builder_));
    return std::vector<TensorId>{y};
  }

  absl::StatusOr<std::vector<Item>> ItemsOf(const std::vector<ValueRef>& refs) {
    std::vector<Item> items;
    for (ValueRef ref : refs) {
      auto held = body_->collections.find(ref);
      if (held != body_->collections.end()) {
        CountElements(held->second);
        items.push_back({.tensor = kNoTensor, .collection = held->second});
        continue;
      }
      ASSIGN_OR_RETURN(TensorId id, TensorOf(ref));
      items.push_back({.tensor = id, .collection = std::nullopt});
    }
    return items;
  }

  // Adds a node that reads or gives sequences or optionals.
  absl::Status AddCollecting(const FlatNode& node) {
    ASSIGN_OR_RETURN(std::vector<Item> items, ItemsOf(node.inputs));
    const bool moves = node.domain.empty() && node.op == "Identity" && items.size() == 1;
    if (!moves && !IsCollectionOp(node)) {
      for (size_t i = 0; i < items.size(); ++i) {
        if (!items[i].collection) continue;
        return RefuseCollection(node, i, value(node.inputs[i]).name, *items[i].collection);
      }
    }
    if (node.op == "SequenceMap") return AddSequenceMap(node, items);
    const std::string name =
        node.outputs[0] == kNoValueRef ? "" : body_->prefix + value(node.outputs[0]).name;
    FlatNode named = node;
    named.name = body_->prefix + node.name;
    ASSIGN_OR_RETURN(Item made, AddCollectionOp(
                                    named, items, name, [this] { return CountNode(); }, builder_));
    return Give(node.outputs[0], std::move(made));
  }

  absl::Status Give(ValueRef ref, Item item) {
    if (ref == kNoValueRef) return absl::OkStatus();
    if (item.collection) {
      body_->collections[ref] = *std::move(item.collection);
      return absl::OkStatus();
    }
    body_->ids[static_cast<size_t>(ref)] = item.tensor;
    return CheckType(ref, item.tensor);
  }

  // Its body once for each element of its first input, a sequence; of further inputs, sequences
  // give an element each, tensors themselves.
  absl::Status AddSequenceMap(const FlatNode& node, const std::vector<Item>& items) {
    const std::string what = DescribeNode(node.name, node.op);
    const onnx::AttributeProto* attribute = FindAttribute(node, "body");
    if (attribute == nullptr || !attribute->has_g()) {
      return InvalidArgument(what, ": attribute \"body\" is no graph");
    }
    const size_t own = items.size() - node.captured.size();
    if (own == 0 || !items[0].collection || items[0].collection->is_none) {
      return InvalidArgument(what, ": input 0 is no sequence");
    }
    const size_t length = items[0].collection->elements.size();
    std::vector<std::vector<TensorId>> made(node.outputs.size());
    for (size_t k = 0; k < length; ++k) {
      std::vector<TensorId> inputs;
      for (size_t i = 0; i < own; ++i) {
        const bool fits = !items[i].collection || items[i].collection->elements.size() == length;
        if (!fits) {
          return InvalidArgument(what, ": input ", i, " has ", items[i].collection->elements.size(),
                                 " elements, input 0 has ", length);
        }
        inputs.push_back(items[i].collection ? items[i].collection->elements[k] : items[i].tensor);
      }
      absl::StatusOr<std::vector<TensorId>> given =
          AddTensorBody(AddsBodiesOf(node, items), attribute->g(), inputs, StrCat(k));
      if (!given.ok()) return Annotate(given.status(), what);
      const std::vector<TensorId>& outputs = *given;
      for (size_t i = outputs.size(); i < made.size(); ++i) {
        if (IsUsed(node.outputs[i])) return HasNoOutput(node, i);
      }
      for (size_t i = 0; i < std::min(outputs.size(), made.size()); ++i) {
        made[i].push_back(outputs[i]);
      }
    }
    for (size_t i = 0; i < made.size(); ++i) {
      RETURN_IF_ERROR(
          Give(node.outputs[i], {.tensor = kNoTensor, .collection = Collection{false, made[i]}}));
    }
    return absl::OkStatus();
  }

  // Names of its outputs in the graph. What they and the names of nodes add up to is bounded.
  absl::StatusOr<std::vector<std::string>> NamesOf(const FlatNode& node) {
    std::vector<std::string> names;
    for (ValueRef ref : node.outputs) {
      names.push_back(ref == kNoValueRef ? "" : body_->prefix + value(ref).name);
      name_bytes_ += static_cast<int64_t>(names.back().size());
    }
    name_bytes_ += static_cast<int64_t>(body_->prefix.size() + node.name.size());
    if (body_ != &main_ && name_bytes_ > kMaxNameBytes) {
      return ResourceExhausted("names have more than ", kMaxNameBytes,
                               " bytes after loops are written out");
    }
    return names;
  }

  absl::Status AddNode(const FlatNode& node) {
    const AtNode at(node.name, node.op);
    Job::Step();
    if (node.outputs.empty()) {
      return InvalidArgument(DescribeNode(node.name, node.op), ": has no output");
    }
    if (IsControlFlow(node)) return AddFlow(node);
    const bool collects = IsCollectionOp(node) ||
                          (!body_->collections.empty() &&
                           std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueRef ref) {
                             return body_->collections.count(ref) != 0;
                           }));
    if (collects) return AddCollecting(node);
    const bool constant = node.domain.empty() && node.op == "Constant";
    if (constant && body_ != &main_ && node.outputs[0] != kNoValueRef &&
        body_->constants[static_cast<size_t>(node.outputs[0])] != kNoTensor) {
      return absl::OkStatus();
    }
    std::vector<TensorId> inputs;
    for (ValueRef ref : node.inputs) {
      ASSIGN_OR_RETURN(TensorId id, TensorOf(ref));
      inputs.push_back(id);
    }
    ASSIGN_OR_RETURN(std::vector<std::string> names, NamesOf(node));
    absl::StatusOr<std::vector<TensorId>> outputs;
    if (constant) {
      outputs = AddConstantNode(node, names[0]);
    } else if (node.domain.empty() && node.op == "Dropout") {
      bool mask = node.outputs.size() > 1 && IsUsed(node.outputs[1]);
      names.resize(std::max<size_t>(names.size(), 2));
      outputs = AddDropout(node, inputs, mask, names, builder_);
    } else if (IsFlexAttention(node)) {
      outputs = AddFlex(node, inputs, names[0]);
    } else {
      outputs = AddOperator(node, inputs, std::move(names));
    }
    RETURN_IF_ERROR(outputs.status());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      TensorId id = i < outputs->size() ? (*outputs)[i] : kNoTensor;
      if (id == kNoTensor && IsUsed(node.outputs[i])) return HasNoOutput(node, i);
      if (id == kNoTensor || node.outputs[i] == kNoValueRef) continue;
      body_->ids[static_cast<size_t>(node.outputs[i])] = id;
      if (constant && body_ != &main_) body_->constants[static_cast<size_t>(node.outputs[i])] = id;
      RETURN_IF_ERROR(CheckType(node.outputs[i], id));
    }
    return absl::OkStatus();
  }

  struct Declaration {
    DeclaredType type;
    std::string what;
  };

  const onnx::GraphProto& graph_;
  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  double follow_points_ = kMaxFollowPoints;
  InlineRule rule_;
  SymbolTable symbols_;
  GraphBuilder main_builder_;
  GraphBuilder* builder_ = &main_builder_;  // of the graph that nodes are added to
  int64_t graphs_ = 0;                      // begun so far
  int64_t graph_number_ = 0;                // of builder_
  Body main_;
  Body* body_ = &main_;
  std::map<std::pair<const FlatNode*, const onnx::GraphProto*>, std::unique_ptr<Body>> bodies_;
  int added_ = 0;
  int64_t unseeded_ = 0;  // nodes that draw numbers without a seed, so far
  int body_depth_ = 0;
  int64_t name_bytes_ = 0;
  int64_t custom_bytes_ = 0;  // of the bodies of custom ops
  std::vector<ValueRef> input_refs_;
  std::vector<DType> input_dtypes_;
  std::vector<Shape> input_shapes_;  // local
  std::unordered_map<ValueRef, std::vector<Declaration>> declared_;
};

absl::Status AlreadyFused(const onnx::NodeProto& call) {
  const std::string& name =
      call.name().empty() && call.output_size() > 0 ? call.output(0) : call.name();
  return InvalidArgument("ALREADY_FUSED: ", DescribeNode(name, call.op_type()), ": is of domain ",
                         Quote(kGroupDomain),
                         ", a group that an export of a plan has written; "
                         "expected the model as it was before, or a request with allow_fused "
                         "(fusionctl: --allow-fused)");
}

}  // namespace

absl::StatusOr<Graph> ImportOnnx(const onnx::ModelProto& model, const ImportOptions& options) {
  if (!model.has_graph()) return InvalidArgument("the model has no graph");
  if (model.graph().sparse_initializer_size() > 0) {
    return Unimplemented("initializer ",
                         QuoteShort(model.graph().sparse_initializer(0).values().name()),
                         " is sparse; only dense initializers are supported");
  }
  const onnx::NodeProto* call = FindGroupCall(model);
  if (call == nullptr) return OnnxImporter(model, options).Run();
  if (!options.allow_fused) return AlreadyFused(*call);
  onnx::ModelProto opened = model;
  OpenGroups(&opened);
  return OnnxImporter(opened, options).Run();
}

}  // namespace fusion
