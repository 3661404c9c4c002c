#include "core/import/model/flatten.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "core/base/threads/job.h"
#include "core/import/import.h"
#include "core/onnx/constant_node.h"

namespace fusion {
namespace {

constexpr size_t kMaxCallDepth = 64;
constexpr size_t kMaxPrefixBytes = 512;
// Inputs, outputs and attributes of all nodes and calls together.
constexpr int64_t kMaxItems = int64_t{64} * kMaxImportedNodes;

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

const onnx::NodeProto& IdentityProto() {
  static const auto* const kNode = [] {
    auto* node = new onnx::NodeProto;  // lives for ever
    node->set_op_type("Identity");
    return node;
  }();
  return *kNode;
}

std::string NodeName(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return "";
}

// Names that a body uses and does not define: `defined` holds those of the bodies around it, for
// nested ones. Charges each name to `items`.
absl::Status AddCaptured(const onnx::GraphProto& body, int depth, int64_t* items,
                         std::unordered_set<std::string> defined,
                         std::vector<std::string>* captured) {
  if (depth > kMaxBodyDepth) {
    return ResourceExhausted("bodies are nested deeper than ", kMaxBodyDepth);
  }
  *items += static_cast<int64_t>(defined.size()) + 1;
  Job::Step(static_cast<int64_t>(defined.size()) + 1);
  for (const auto& input : body.input()) defined.insert(input.name());
  for (const auto& initializer : body.initializer()) defined.insert(initializer.name());
  for (const onnx::NodeProto& node : body.node()) {
    defined.insert(node.output().begin(), node.output().end());
  }
  auto use = [&](const std::string& name) {
    ++*items;
    if (!name.empty() && defined.insert(name).second) captured->push_back(name);
  };
  for (const onnx::NodeProto& node : body.node()) {
    for (const std::string& name : node.input()) use(name);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      if (*items > kMaxItems) break;
      const size_t before = captured->size();
      RETURN_IF_ERROR(AddCaptured(attribute.g(), depth + 1, items, defined, captured));
      for (size_t i = before; i < captured->size(); ++i) defined.insert((*captured)[i]);
    }
  }
  for (const auto& output : body.output()) use(output.name());
  return absl::OkStatus();
}

/// Inlines depth first with a stack of its own: calls may be nested as the client likes.
class Flattener {
 public:
  absl::StatusOr<FlatModel> Run(const onnx::ModelProto& model) {
    ASSIGN_OR_RETURN(FunctionTable functions, FunctionTable::Make(model));
    ASSIGN_OR_RETURN(OpsetMap opsets, ReadOpsets(model.opset_import()));
    if (opsets.empty() && model.ir_version() < 3) opsets[""] = 1;
    out_.functions = std::make_shared<const FunctionTable>(std::move(functions));
    out_.opsets = std::make_shared<const OpsetMap>(std::move(opsets));
    out_.cost = std::make_shared<FlattenCost>();
    RETURN_IF_ERROR(Open(model.graph(), {.opsets = out_.opsets.get()}));
    return Flatten();
  }

  absl::StatusOr<FlatModel> RunBody(const FlatModel& outer, const FlatNode& of,
                                    const onnx::GraphProto& body) {
    out_.functions = outer.functions;
    out_.opsets = outer.opsets;
    out_.cost = outer.cost;
    Frame frame{.opsets = of.opsets, .attributes = of.attributes};
    for (const std::string& name : of.captured) {
      RETURN_IF_ERROR(Define(&frame, name, AddValue(FlatValue::kInput, name, 0)));
    }
    // A node's other bodies capture other names: those this one defines are its own.
    for (const auto& named : body.node()) {
      for (const std::string& output : named.output()) frame.scope.erase(output);
    }
    for (const auto& named : body.initializer()) frame.scope.erase(named.name());
    for (const auto& named : body.input()) frame.scope.erase(named.name());
    RETURN_IF_ERROR(Open(body, std::move(frame)));
    return Flatten();
  }

 private:
  absl::StatusOr<FlatModel> Flatten() {
    while (!stack_.empty()) {
      if (stack_.back().next == stack_.back().nodes->size()) {
        if (stack_.size() == 1) out_.by_name = std::move(stack_.back().scope);
        stack_.pop_back();
        continue;
      }
      RETURN_IF_ERROR(Step());
    }
    return std::move(out_);
  }

  struct Frame {
    const NodeList* nodes = nullptr;
    int next = 0;
    std::unordered_map<std::string, ValueRef> scope;
    // Outputs of the function that the caller names and no node of the body has given yet.
    std::unordered_map<std::string, ValueRef> promised;
    std::string prefix;
    const OpsetMap* opsets = nullptr;
    const AttributeScope* attributes = nullptr;
    const FunctionTable::Function* function = nullptr;
  };

  ValueRef AddValue(FlatValue::Kind kind, std::string name, int index) {
    out_.values.push_back({.kind = kind, .name = std::move(name), .index = index});
    return static_cast<ValueRef>(out_.values.size()) - 1;
  }

  absl::Status Define(Frame* frame, const std::string& name, ValueRef value) {
    if (frame->scope.emplace(name, value).second) return absl::OkStatus();
    return InvalidArgument("tensor ", QuoteShort(frame->prefix + name), " is defined twice");
  }

  // A short function with long lists, called often, must not cost more than the limit either.
  absl::Status Charge(int64_t items) {
    out_.cost->items += items;
    if (out_.cost->items <= kMaxItems) return absl::OkStatus();
    return ResourceExhausted("the nodes of the model have more than ", kMaxItems,
                             " inputs, outputs and attributes after its functions are inlined");
  }

  // Gives every output of the body its value, so that nodes may come in any order.
  absl::Status DefineOutputs(Frame* frame) {
    std::unordered_set<std::string_view> constants;
    for (const onnx::NodeProto& node : *frame->nodes) {
      const std::string own_name = NodeName(node);
      const AtNode at(own_name, node.op_type());
      Job::Step();
      RETURN_IF_ERROR(Charge(1 + node.output_size()));
      for (const std::string& name : node.output()) {
        if (name.empty()) continue;
        // Of several Constant nodes for one name the last counts (Emit): edited models of real
        // users have them, and ONNX Runtime reads them so.
        if (IsConstantNode(node) && !constants.insert(name).second) continue;
        ValueRef value = kNoValueRef;
        if (auto promised = frame->promised.find(name); promised != frame->promised.end()) {
          value = promised->second;
          frame->promised.erase(promised);
        } else {
          value = AddValue(FlatValue::kUndefined, frame->prefix + name, 0);
        }
        RETURN_IF_ERROR(Define(frame, name, value));
      }
    }
    return absl::OkStatus();
  }

  // The graph that is flattened; `frame` holds what it sees of others.
  absl::Status Open(const onnx::GraphProto& graph, Frame frame) {
    frame.nodes = &graph.node();
    for (int i = 0; i < graph.initializer_size(); ++i) {
      const std::string& name = graph.initializer(i).name();
      if (name.empty()) return InvalidArgument("initializer ", i, " has no name");
      RETURN_IF_ERROR(Define(&frame, name, AddValue(FlatValue::kInitializer, name, i)));
    }
    std::unordered_map<std::string, int> inputs;
    for (int i = 0; i < graph.input_size(); ++i) {
      const std::string& name = graph.input(i).name();
      if (name.empty()) return InvalidArgument("input ", i, " has no name");
      if (!inputs.emplace(name, i).second) {
        return InvalidArgument("input ", QuoteShort(name), " is declared twice");
      }
      // Older models list initialisers among the inputs.
      if (frame.scope.count(name) != 0) continue;
      RETURN_IF_ERROR(Define(&frame, name, AddValue(FlatValue::kInput, name, i)));
    }
    RETURN_IF_ERROR(DefineOutputs(&frame));
    stack_.push_back(std::move(frame));
    return absl::OkStatus();
  }

  // Handles the next node of the innermost body.
  absl::Status Step() {
    Frame& frame = stack_.back();
    const onnx::NodeProto& node = frame.nodes->Get(frame.next++);
    if (++out_.cost->steps > kMaxImportedNodes) {
      return ResourceExhausted("the model has more than ", kMaxImportedNodes,
                               " nodes after its functions are inlined");
    }
    RETURN_IF_ERROR(Charge(node.input_size() + node.output_size() + node.attribute_size()));
    FlatNode flat{.proto = &node, .name = frame.prefix + NodeName(node)};
    {
      const AtNode at(flat.name, node.op_type());
      Job::Step();
    }
    flat.domain = NormalDomain(node.domain());
    flat.op = node.op_type();
    if (auto opset = frame.opsets->find(flat.domain); opset != frame.opsets->end()) {
      flat.opset = opset->second;
    }
    flat.attributes = frame.attributes;
    for (const std::string& name : node.input()) flat.inputs.push_back(Use(&frame, name));
    for (const std::string& name : node.output()) {
      flat.outputs.push_back(name.empty() ? kNoValueRef : frame.scope.at(name));
    }
    if (const FunctionTable::Function* function = out_.functions->Find(node)) {
      return OpenFunction(*function, flat);
    }
    RETURN_IF_ERROR(AddCaptures(&frame, &flat));
    Emit(std::move(flat));
    return absl::OkStatus();
  }

  // What the bodies of a node use of the frame.
  absl::Status AddCaptures(Frame* frame, FlatNode* node) {
    node->opsets = frame->opsets;
    for (const onnx::AttributeProto& attribute : node->proto->attribute()) {
      if (!attribute.has_g()) continue;
      absl::Status status = AddCaptured(attribute.g(), 1, &out_.cost->items, {}, &node->captured);
      if (!status.ok()) return Annotate(status, DescribeNode(node->name, node->op));
    }
    std::sort(node->captured.begin(), node->captured.end());
    node->captured.erase(std::unique(node->captured.begin(), node->captured.end()),
                         node->captured.end());
    for (const std::string& name : node->captured) node->inputs.push_back(Use(frame, name));
    return Charge(0);
  }

  ValueRef Use(Frame* frame, const std::string& name) {
    if (name.empty()) return kNoValueRef;
    auto it = frame->scope.find(name);
    if (it != frame->scope.end()) return it->second;
    ValueRef value = AddValue(FlatValue::kUndefined, frame->prefix + name, 0);
    frame->scope.emplace(name, value);
    return value;
  }

  void Emit(FlatNode flat) {
    for (ValueRef value : flat.outputs) {
      if (value == kNoValueRef) continue;
      FlatValue& v = out_.values[static_cast<size_t>(value)];
      v.kind = FlatValue::kNode;
      v.index = static_cast<int>(out_.nodes.size());
    }
    out_.nodes.push_back(std::move(flat));
  }

  absl::Status CheckCall(const FunctionTable::Function& function, const FlatNode& call) const {
    const onnx::FunctionProto& proto = *function.proto;
    auto where = [&] {
      return StrCat("node ", QuoteShort(call.name), " calls function ", QuoteShort(proto.name()));
    };
    for (const Frame& frame : stack_) {
      if (frame.function == &function) {
        return InvalidArgument(where(), ", which calls itself");
      }
    }
    if (stack_.size() > kMaxCallDepth) {
      return ResourceExhausted(where(), ": calls are nested deeper than ", kMaxCallDepth);
    }
    if (static_cast<int>(call.inputs.size()) > proto.input_size() ||
        static_cast<int>(call.outputs.size()) > proto.output_size()) {
      return InvalidArgument(where(), " with ", call.inputs.size(), " inputs and ",
                             call.outputs.size(), " outputs, it has ", proto.input_size(), " and ",
                             proto.output_size());
    }
    return absl::OkStatus();
  }

  // Attributes of the call, references to the caller's own attributes resolved, over the defaults.
  const AttributeScope* BindAttributes(const FunctionTable::Function& function,
                                       const FlatNode& call) {
    AttributeScope scope;
    for (const onnx::AttributeProto& attribute : function.defaults) {
      scope[attribute.name()] = &attribute;
    }
    for (const onnx::AttributeProto& attribute : call.proto->attribute()) {
      if (attribute.ref_attr_name().empty()) {
        scope[attribute.name()] = &attribute;
      } else if (call.attributes != nullptr) {
        auto outer = call.attributes->find(attribute.ref_attr_name());
        if (outer != call.attributes->end()) scope[attribute.name()] = outer->second;
      }
    }
    out_.scopes.push_back(std::move(scope));
    return &out_.scopes.back();
  }

  absl::Status OpenFunction(const FunctionTable::Function& function, const FlatNode& call) {
    RETURN_IF_ERROR(CheckCall(function, call));
    const onnx::FunctionProto& proto = *function.proto;
    RETURN_IF_ERROR(Charge(proto.input_size() + proto.output_size() +
                           static_cast<int64_t>(function.defaults.size())));
    Frame frame{.nodes = &proto.node(), .opsets = &function.opsets, .function = &function};
    frame.prefix = call.name.substr(0, kMaxPrefixBytes) + "/";
    frame.attributes = BindAttributes(function, call);
    for (int i = 0; i < proto.input_size(); ++i) {
      auto at = static_cast<size_t>(i);
      ValueRef value = at < call.inputs.size() ? call.inputs[at] : kNoValueRef;
      RETURN_IF_ERROR(Define(&frame, proto.input(i), value));
    }
    // An output that is an input, or is named twice, is passed on by an Identity.
    std::vector<std::pair<std::string, ValueRef>> aliases;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const std::string& name = proto.output(static_cast<int>(i));
      if (call.outputs[i] == kNoValueRef) continue;
      bool first =
          frame.scope.count(name) == 0 && frame.promised.emplace(name, call.outputs[i]).second;
      if (!first) aliases.emplace_back(name, call.outputs[i]);
    }
    RETURN_IF_ERROR(DefineOutputs(&frame));
    if (!frame.promised.empty()) {
      return InvalidArgument("function ", QuoteShort(proto.name()), ": no node gives its output ",
                             QuoteShort(frame.promised.begin()->first));
    }
    for (const auto& [name, value] : aliases) {
      Emit({.proto = &IdentityProto(),
            .name = frame.prefix + name,
            .op = "Identity",
            .opset = 1,
            .inputs = {frame.scope.at(name)},
            .outputs = {value}});
    }
    stack_.push_back(std::move(frame));
    return absl::OkStatus();
  }

  FlatModel out_;
  std::vector<Frame> stack_;
};

}  // namespace

absl::StatusOr<FlatModel> FlattenModel(const onnx::ModelProto& model) {
  return Flattener().Run(model);
}

absl::StatusOr<FlatModel> FlattenBody(const FlatModel& outer, const FlatNode& of,
                                      const onnx::GraphProto& body) {
  return Flattener().RunBody(outer, of, body);
}

}  // namespace fusion
